// A line of a path and a text in base64 in, a list of errors out: what the TypeScript compiler says of a file on its own.
// Errors of syntax, and those that need nothing but the file: names declared twice, `const` without a value, `await`,
// `return`, `break` and the like outside their place. Never types, nor names that come from elsewhere.
const ts = require(process.argv[2]);

// By number: those of 1000 to 1999 are errors of grammar but for these, which ask for an option or another file.
const ABOUT_OPTIONS = new Set([
  1192, 1202, 1203, 1205, 1208, 1218, 1219, 1240, 1241, 1252, 1259, 1286, 1287, 1295, 1343, 1361, 1362, 1371, 1375, 1378, 1380,
  1432, 1470, 1479, 1484,
]);
const OTHERS = new Set([
  2300, 2323, 2335, 2336, 2337, 2357, 2364, 2389, 2391, 2392, 2393, 2395, 2440, 2451, 2457, 2528, 2567, 2777, 2779, 18006, 18016,
  18028, 18030,
]);

function errors(text, name) {
  const path = '/' + (/\.[cm]?[jt]sx?$/.test(name) ? name : name + '.ts');
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.ESNext, true);
  const options = {
    allowJs: true, checkJs: true, jsx: 1, noLib: true, noResolve: true, types: [], experimentalDecorators: true, strict: false,
    target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext,
  };
  const host = {
    fileExists: (each) => each === path, readFile: () => undefined, getSourceFile: (each) => (each === path ? file : undefined),
    getDefaultLibFileName: () => 'lib.d.ts', getCurrentDirectory: () => '/', getCanonicalFileName: (each) => each,
    useCaseSensitiveFileNames: () => true, getNewLine: () => '\n', writeFile() {}, directoryExists: () => false,
  };
  const program = ts.createProgram([path], options, host);
  let found = program.getSyntacticDiagnostics(file);
  if (!found.length) {
    found = program.getSemanticDiagnostics(file).filter(
      ({ code }) => (code >= 1000 && code < 2000 && !ABOUT_OPTIONS.has(code)) || OTHERS.has(code));
  }
  return found.map((each) => `${each.code} ${ts.flattenDiagnosticMessageText(each.messageText, ' ')} (line ${
    file.getLineAndCharacterOfPosition(each.start || 0).line + 1})`);
}

require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const [given, encoded] = line.split('\t');
  const name = given.replace(/.*\//, '');
  const text = Buffer.from(encoded, 'base64').toString();
  let found;
  try {
    found = errors(text, name);
  } catch (error) {
    found = [];  // the compiler itself failed
  }
  console.log(JSON.stringify(found));
});
