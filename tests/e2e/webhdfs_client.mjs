// Tests a WebHDFS server with npm's webhdfs and prints the results as JSON: node webhdfs_client.mjs PORT
import {createRequire} from 'node:module';
import {promisify} from 'node:util';

const require = createRequire(process.env.NODE_PATH + '/');
const client = require('webhdfs').createClient(
    {user: 'carol', host: '127.0.0.1', port: Number(process.argv[2]), path: '/webhdfs/v1'});
const call = (name, ...args) => promisify(client[name].bind(client))(...args);

const first = Buffer.from(Array.from({length: 300000}, (_, i) => i * 7 % 256));
const second = Buffer.from('and more');
await call('mkdir', '/npm');
await call('writeFile', '/npm/a', first);
await call('appendFile', '/npm/a', second);
const read = await call('readFile', '/npm/a');
const stat = await call('stat', '/npm/a');
await call('chmod', '/npm/a', '0600');
await call('rename', '/npm/a', '/npm/b');
const names = (await call('readdir', '/npm')).map((one) => [one.pathSuffix, one.type, one.length, one.permission]);
let absent = '';
await call('readFile', '/npm/none').catch((error) => { absent = error.message; });
let refused = '';
await call('rmdir', '/npm').catch((error) => { refused = error.message; });
await call('unlink', '/npm/b');
const left = await call('readdir', '/npm');
console.log(JSON.stringify({same: read.equals(Buffer.concat([first, second])), length: stat.length, owner: stat.owner,
                            names, absent, refused, left}));
