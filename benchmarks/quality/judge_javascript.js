// A line of a path and a text in base64 in, a list of errors out: what V8 says of a file, as `node --check` does.
// A file is a module where it can be nothing else; which it was is remembered by its path.
const vm = require('vm');
const kinds = new Map();

function asScript(text) {
  // The wrapper of CommonJS modules, in which `return` may stand anywhere.
  vm.compileFunction(text.replace(/^#!.*/, ''), ['exports', 'require', 'module', '__filename', '__dirname']);
}

function asModule(text) {
  new vm.SourceTextModule(text);
}

function check(text, name) {
  const kind = kinds.get(name) || (/\.mjs$/.test(name) ? 'module' : '');
  if (kind) return (kind === 'module' ? asModule : asScript)(text);
  try {
    asScript(text);
    kinds.set(name, 'script');
  } catch (error) {
    asModule(text);
    kinds.set(name, 'module');
  }
}

require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const [name, encoded] = line.split('\t');
  const text = Buffer.from(encoded, 'base64').toString();
  let errors = [];
  try {
    check(text, name);
  } catch (error) {
    errors = [String(error)];
  }
  console.log(JSON.stringify(errors));
});
