// The early errors that node finds. A line of JSON with {text, module} in, one with an error or null out.
// A text that says nothing of its kind (module null) is fine as CommonJS or as a module, as for `node --check`.
const vm = require('vm');
const WRAPPER = ['exports', 'require', 'module', '__filename', '__dirname'];

function error(compile) {
  try {
    compile();
    return null;
  } catch (thrown) {
    return thrown.message;
  }
}
const asScript = (text) => error(() => vm.compileFunction(text.replace(/^#!.*/, ''), WRAPPER));
const asModule = (text) => error(() => new vm.SourceTextModule(text));

require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { text, module } = JSON.parse(line);
  let found = module === true ? asModule(text) : asScript(text);
  if (found && module === null && asModule(text) === null) found = null;
  console.log(JSON.stringify(found));
});
