import { Component, h, type ComponentChildren, type FunctionComponent } from 'preact';

// Renders a component again only when one of its props is another value.
export function memo<P extends object>(render: (props: P) => ComponentChildren): FunctionComponent<P> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      const before = this.props as Record<string, unknown>;
      const after = next as Record<string, unknown>;
      return Object.keys(after).some((name) => before[name] !== after[name]);
    }
    override render() {
      return render(this.props as P);
    }
  }
  return (props: P) => h(Memo as never, props as never);
}
