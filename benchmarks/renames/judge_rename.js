// Lines of JSON in, lines of JSON out: the places that the TypeScript compiler renames with the one at an offset.
// {name, text, offset} -> null where nothing there can be renamed, else {kind, places: [[start, end, prefix, suffix], …]}.
const ts = require(process.argv[2]);

const options = {
  allowJs: true, checkJs: true, jsx: 1, noLib: true, noResolve: true, types: [], experimentalDecorators: true, strict: false,
  target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext,
};
let path = '/a.ts', text = '', version = 0;
const host = {
  getCompilationSettings: () => options, getScriptFileNames: () => [path], getScriptVersion: () => String(version),
  getScriptSnapshot: (each) => (each === path ? ts.ScriptSnapshot.fromString(text) : undefined),
  getCurrentDirectory: () => '/', getDefaultLibFileName: () => '/lib.d.ts', fileExists: (each) => each === path,
  readFile: (each) => (each === path ? text : undefined), directoryExists: () => false, getDirectories: () => [],
};
const service = ts.createLanguageService(host);

function places(offset) {
  const info = service.getRenameInfo(path, offset, {});
  if (!info.canRename) return null;
  const found = service.findRenameLocations(path, offset, false, false, { providePrefixAndSuffixTextForRename: true });
  // What a comment says of a parameter is no code.
  const inCode = (each) => !service.getSpanOfEnclosingComment(path, each.textSpan.start, false);
  return !found ? null : {
    kind: info.kind,
    places: found.filter(inCode).map((each) => [each.textSpan.start, each.textSpan.start + each.textSpan.length, each.prefixText || '', each.suffixText || '']),
  };
}

require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const asked = JSON.parse(line);
  if (asked.text !== text || '/' + asked.name !== path) {
    [path, text] = ['/' + asked.name, asked.text];
    version += 1;
  }
  let found = null;
  try {
    found = places(asked.offset);
  } catch (error) {
    found = null;  // the compiler itself failed
  }
  console.log(JSON.stringify(found));
});
