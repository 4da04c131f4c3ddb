vim9script
# Inline completions from codespec in Vim 9.0.0185 or later: docs/editors.md says how to set it up.
#
#   g:codespec_cmd        the server, ['codespec', 'serve']
#   g:codespec_filetypes  where to complete
#   g:codespec_settings   the keys of codespec.toml, such as {'max_tokens': 64}

if exists('g:loaded_codespec')
  finish
elseif !has('patch-9.0.0185') || !has('job') || !has('textprop')
  echomsg 'codespec: Vim 9.0.0185 or later is needed, with +job and +textprop'
  finish
endif
g:loaded_codespec = true

const CMD: list<string> = get(g:, 'codespec_cmd', ['codespec', 'serve'])
const FILETYPES: list<string> = get(g:, 'codespec_filetypes', ['python', 'json', 'javascript', 'javascriptreact',
  'typescript', 'typescriptreact', 'c', 'cpp', 'go', 'rust', 'java', 'sh', 'sql', 'yaml', 'toml', 'html', 'css'])
const LANGUAGES = {sh: 'shellscript'} # where Vim's name is another one
const PAUSE_MS = 60 # how long the keyboard has to rest before a request

# The colour of comments; grey where they have none, as without `:syntax on`: ghost text would look like code.
def DefineColours()
  const where = has('gui_running') || &termguicolors ? 'gui' : 'cterm'
  if hlID('Comment')->synIDtrans()->synIDattr('fg', where) ==# ''
    highlight default CodespecGhostText ctermfg=DarkGrey guifg=#808080
  else
    highlight default link CodespecGhostText Comment
  endif
enddef

DefineColours()
prop_type_add('codespec', {highlight: 'CodespecGhostText'})

var server: job
var started = false
var ready = false
var leaving = false
var said = '' # the latest that the server wrote to its standard error
var versions: dict<number> = {} # of the documents that the server knows, by buffer
var listeners: dict<number> = {}
var asked = 0 # the request under way
var pause = 0
var ghost: dict<any> = {} # what is to be shown: item, buffer, row
var drawn = false

def Warn(text: string)
  echohl WarningMsg
  echomsg 'codespec: ' .. text
  echohl None
enddef

def Send(method: string, params: any)
  if ready && job_status(server) == 'run'
    ch_sendexpr(server, {method: method, params: params})
  endif
enddef

def Uri(path: string): string
  var slashed = has('win32') ? substitute(path, '\\', '/', 'g') : path
  var quoted = substitute(slashed, '[%#? ]', (m) => printf('%%%02X', char2nr(m[0])), 'g')
  return 'file://' .. (quoted =~ '^/' ? '' : '/') .. quoted
enddef

def Document(buffer: number): dict<any>
  var path = bufname(buffer)
  return {uri: path == '' ? 'untitled:' .. buffer : Uri(fnamemodify(path, ':p'))}
enddef

def Root(): string
  var upwards = escape(expand('%:p:h'), ' ,;') .. ';'
  for marker in ['codespec.toml', 'pyproject.toml', '.git']
    var found = findfile(marker, upwards) ?? finddir(marker, upwards)
    if found != ''
      return fnamemodify(found, ':p:s?[/\\]$??:h')
    endif
  endfor
  return expand('%:p:h')
enddef

def Start()
  if executable(CMD[0]) == 0
    Warn('there is no program ' .. CMD[0] .. "; install it, or name it: let g:codespec_cmd = ['/path/to/codespec', 'serve']")
    return
  endif
  [ready, leaving, said, versions] = [false, false, '', {}]
  server = job_start(CMD, {in_mode: 'lsp', out_mode: 'lsp', err_mode: 'nl', noblock: 1,
    out_cb: OnMessage, err_cb: OnError, exit_cb: OnExit})
  var root = Root()
  ch_sendexpr(server, {method: 'initialize', params: {
    processId: getpid(), clientInfo: {name: 'Vim'}, rootUri: Uri(root),
    workspaceFolders: [{uri: Uri(root), name: fnamemodify(root, ':t')}],
    initializationOptions: get(g:, 'codespec_settings', {}),
    capabilities: {general: {positionEncodings: ['utf-8']}, textDocument: {inlineCompletion: {}}}
  }}, {callback: OnReady})
enddef

def OnReady(_: channel, answer: dict<any>)
  ready = true
  Send('initialized', {})
  for info in getbufinfo({bufloaded: 1})
    Open(info.bufnr)
  endfor
  Ask() # for who types already
enddef

def OnMessage(_: channel, message: dict<any>)
  if has_key(message, 'id') && has_key(message, 'method')
    ch_sendexpr(server, {id: message.id, result: null}) # it asks for nothing that Vim would have to do
  elseif get(message, 'method', '') == 'window/showMessage'
    Warn(substitute(message.params.message, '^codespec: ', '', ''))
  endif
enddef

def OnError(_: channel, line: string)
  said = line
enddef

def OnExit(ended: job, status: number)
  if ended != server # it was started again
    return
  endif
  Hide()
  [ready, versions] = [false, {}]
  if !leaving
    Warn(printf('the server has ended (%d) %s; :CodespecRestart starts it again', status, said))
  endif
enddef

def Stop()
  leaving = true
  if ready && job_status(server) == 'run'
    ch_evalexpr(server, {method: 'shutdown'}, {timeout: 1000})
    ch_sendexpr(server, {method: 'exit'})
  endif
enddef

def Open(buffer: number)
  if !ready || has_key(versions, buffer) || index(FILETYPES, getbufvar(buffer, '&filetype')) < 0
    return
  endif
  versions[buffer] = 0
  var kind = getbufvar(buffer, '&filetype')
  var text = getbufline(buffer, 1, '$')->join("\n") .. "\n"
  Send('textDocument/didOpen', {textDocument: Document(buffer)->extend(
    {languageId: get(LANGUAGES, kind, kind), version: 0, text: text})})
  if !has_key(listeners, buffer)
    listeners[buffer] = listener_add(OnChange, buffer)
  endif
enddef

def OnFileType(buffer: number)
  if index(FILETYPES, getbufvar(buffer, '&filetype')) < 0
    Close(buffer)
  elseif !started
    started = true
    Start()
  else
    Open(buffer)
  endif
enddef

def Saved(buffer: number)
  if has_key(versions, buffer)
    Send('textDocument/didSave', {textDocument: Document(buffer)})
  endif
enddef

def Close(buffer: number)
  if has_key(versions, buffer)
    remove(versions, buffer)
    Send('textDocument/didClose', {textDocument: Document(buffer)})
  endif
enddef

def OnChange(buffer: number, first: number, below: number, added: number, changes: list<any>)
  if !has_key(versions, buffer)
    return
  endif
  versions[buffer] += 1
  var change: dict<any>
  if len(changes) == 1
    var lines = getbufline(buffer, first, below + added - 1)
    change = {text: lines->map((_, line) => line .. "\n")->join(''),
      range: {start: {line: first - 1, character: 0}, end: {line: below - 1, character: 0}}}
  else
    change = {text: getbufline(buffer, 1, '$')->join("\n") .. "\n"}
  endif
  Send('textDocument/didChange', {contentChanges: [change],
    textDocument: Document(buffer)->extend({version: versions[buffer]})})
enddef

def Cancel()
  timer_stop(pause)
  if asked > 0
    Send('$/cancelRequest', {id: asked})
    asked = 0
  endif
enddef

# After every key: what is shown stays as long as it is typed along.
def Typed()
  Cancel()
  if !has_key(versions, bufnr()) || pumvisible()
    Hide()
    return
  endif
  Show()
  pause = timer_start(PAUSE_MS, (_) => Ask())
enddef

def Ask()
  if !has_key(versions, bufnr()) || mode() !~ '^[iR]' || pumvisible()
    return
  endif
  listener_flush()
  var place = [bufnr(), b:changedtick, line('.'), col('.')]
  asked = ch_sendexpr(server, {method: 'textDocument/inlineCompletion', params: {textDocument: Document(bufnr()),
    position: {line: line('.') - 1, character: col('.') - 1}, context: {triggerKind: 2}}},
    {callback: (_, answer) => OnCompletion(place, answer)})->get('id', 0)
enddef

def OnCompletion(place: list<number>, answer: dict<any>)
  if place != [bufnr(), b:changedtick, line('.'), col('.')] || mode() !~ '^[iR]'
    return
  endif
  asked = 0
  var result: any = get(answer, 'result', null)
  if type(result) == v:t_dict # else what is shown stays
    ghost = empty(result.items) ? {} : {item: result.items[0], buffer: bufnr(), row: line('.')}
    Show()
  endif
enddef

# What is left of the completion behind the cursor; empty if what was typed is not its beginning.
def Rest(): string
  if empty(ghost) || ghost.buffer != bufnr() || ghost.row != line('.')
    return ''
  endif
  var typed = strpart(getline('.'), ghost.item.range.start.character, col('.') - 1 - ghost.item.range.start.character)
  var text = ghost.item.insertText
  return stridx(text, typed) == 0 ? strpart(text, len(typed)) : ''
enddef

def Clear()
  if drawn
    prop_remove({type: 'codespec', bufnr: bufnr(), all: true})
    DrawAll()
  endif
  drawn = false
enddef

# Vim 9.0 moves the lines below only when the whole window is drawn.
def DrawAll()
  &l:list = &l:list
enddef

def Show()
  Clear()
  var lines = Rest()->substitute('\t', repeat(' ', shiftwidth()), 'g')->split("\n", true)
  if empty(lines)
    ghost = {}
    return
  endif
  drawn = true
  if lines[0] != ''
    prop_add(line('.'), col('.'), {type: 'codespec', text: lines[0]})
  endif
  for each in lines[1 :]
    prop_add(line('.'), 0, {type: 'codespec', text_align: 'below', text: each == '' ? ' ' : each})
  endfor
  DrawAll()
enddef

def Hide()
  ghost = {}
  Clear()
enddef

def Left()
  Cancel()
  Hide()
enddef

# Say what becomes of the completion that is shown.
def Tell(command: string)
  ch_sendexpr(server, {method: 'workspace/executeCommand',
    params: {command: command, arguments: ghost.item.command.arguments}}, {callback: (_, _) => 0})
enddef

# Keys that insert what is shown, or `otherwise`.
def g:CodespecAccept(otherwise: string): string
  return Rest() == '' ? otherwise : "\<C-G>u\<Cmd>call CodespecInsert()\<CR>"
enddef

# As it is, whatever the indentation and formatting of the buffer.
def g:CodespecInsert()
  var lines = Rest()->split("\n", true)
  var line = getline('.')
  var behind = strpart(line, col('.') - 1)
  lines[0] = strpart(line, 0, col('.') - 1) .. lines[0]
  var column = len(lines[-1]) + 1
  lines[-1] ..= behind
  Tell(ghost.item.command.command)
  Hide()
  setline('.', lines[0])
  append('.', lines[1 :])
  cursor(line('.') + len(lines) - 1, column)
enddef

# Keys that hide what is shown, or `otherwise`.
def g:CodespecDismiss(otherwise: string): string
  if Rest() == ''
    return otherwise
  endif
  Tell('codespec.reject')
  Hide()
  return ''
enddef

inoremap <silent> <expr> <Plug>(codespec-accept) g:CodespecAccept("\<Tab>")
inoremap <silent> <expr> <Plug>(codespec-dismiss) g:CodespecDismiss("\<C-]>")
for [key, plug] in [['<Tab>', '<Plug>(codespec-accept)'], ['<C-]>', '<Plug>(codespec-dismiss)']]
  if mapcheck(key, 'i') == '' && !hasmapto(plug, 'i')
    execute 'imap' key plug
  endif
endfor

command! CodespecRestart Stop() | Start()

augroup codespec
  autocmd!
  autocmd ColorScheme * DefineColours()
  autocmd FileType * OnFileType(str2nr(expand('<abuf>')))
  autocmd BufFilePost * Open(str2nr(expand('<abuf>')))
  autocmd BufUnload,BufFilePre * Close(str2nr(expand('<abuf>')))
  autocmd BufWritePost * Saved(str2nr(expand('<abuf>')))
  autocmd InsertEnter,TextChangedI,CursorMovedI * Typed()
  autocmd InsertLeave,BufLeave * Left()
  autocmd VimLeavePre * Stop()
augroup END
