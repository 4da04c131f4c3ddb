// The errors that tsc finds in single files: syntax, and what it says of a file alone before types.
// A line of JSON with a text in, one with an error or null out.
const ts = require('typescript');
const CODES = new Set([
  2300, 2323, 2335, 2336, 2337, 2357, 2364, 2389, 2391, 2392, 2393, 2395, 2427, 2440, 2451, 2457, 2492, 2528, 2567,
  2660, 2777, 2779, 18006, 18016, 18028, 18030,
]);
const OF_TYPES = new Set([
  1192, 1202, 1203, 1205, 1208, 1259, 1268, 1286, 1287, 1295, 1343, 1360, 1361, 1362, 1371, 1375, 1378, 1380, 1470,
  1479, 1484,
]);
const NAME = '/file.ts';
const options = {
  noResolve: true, noLib: true, target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext, types: [],
  experimentalDecorators: true, strict: false,
};

function errors(text) {
  const file = ts.createSourceFile(NAME, text, ts.ScriptTarget.ESNext, true);
  const program = ts.createProgram([NAME], options, {
    getSourceFile: (name) => (name === NAME ? file : undefined),
    fileExists: (name) => name === NAME,
    getDefaultLibFileName: () => 'lib.d.ts',
    writeFile() {},
    getCurrentDirectory: () => '/',
    getCanonicalFileName: (name) => name,
    useCaseSensitiveFileNames: () => true,
    getNewLine: () => '\n',
    readFile: () => undefined,
    directoryExists: () => false,
  });
  const found = program.getSyntacticDiagnostics(file);
  if (found.length) return found;
  const syntax = (code) => code >= 1000 && code < 2000 && !OF_TYPES.has(code);
  return program.getSemanticDiagnostics(file).filter(({ code }) => syntax(code) || CODES.has(code));
}

require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const [found] = errors(JSON.parse(line));
  console.log(JSON.stringify(found ? ts.flattenDiagnosticMessageText(found.messageText, '\n') : null));
});
