import { render } from 'preact';
import { App } from './App.tsx';
import { startTheme } from './theme.ts';
import './style.css';

startTheme();
render(<App />, document.getElementById('app')!);
