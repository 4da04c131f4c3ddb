-- The options of `setup`: defaults, and what is wrong with what the user wrote.

local M = {}

M.defaults = {
  -- The server and its arguments.
  cmd = { 'codespec', 'serve' },
  -- Where to complete; { '*' } is everywhere.
  filetypes = {
    'python', 'json', 'jsonc', 'javascript', 'javascriptreact', 'typescript', 'typescriptreact', 'c', 'cpp', 'go',
    'rust', 'java', 'sh', 'bash', 'sql', 'yaml', 'toml', 'html', 'css', 'lua', 'markdown',
  },
  -- The keys of codespec.toml.
  settings = {},
  -- Ask by itself when the keyboard rests, and not only by the key `trigger`.
  auto_trigger = true,
  -- How long the keyboard has to rest before a request; Neovim's own inline completion has its own delay.
  debounce_ms = 60,
  -- Tell behind a completion how long it took from the request to the answer.
  show_latency = false,
  -- Larger files are left alone: before every key Neovim goes through all lines of a file that a server knows.
  max_file_kib = 2048,
  -- Whether Neovim's own vim.lsp.inline_completion draws; nil: where there is one, which is from 0.12 on.
  native = nil,
  -- Keys of Insert mode, which do their work where a completion is shown and are themselves where none is; `accept` and
  -- `dismiss` also where an edit is. next_edit, accept and drop_edit are keys of Normal mode for edits, the first of
  -- Insert mode, too. false leaves a key alone.
  keys = {
    accept = '<Tab>',
    accept_word = '<M-Right>',
    accept_line = '<M-C-Right>',
    next = '<M-]>',
    previous = '<M-[>',
    dismiss = '<C-]>',
    trigger = '<M-Bslash>',
    next_edit = '<M-n>',
    drop_edit = '<Esc>',
  },
}

local function is_list_of_strings(value)
  if type(value) ~= 'table' or #value == 0 or vim.tbl_count(value) ~= #value then
    return false
  end
  for _, each in ipairs(value) do
    if type(each) ~= 'string' or each == '' then
      return false
    end
  end
  return true
end

local function is_count(value)
  return type(value) == 'number' and value >= 0
end

local function is_boolean(value)
  return type(value) == 'boolean'
end

-- What each option has to be, and how that is called.
local RULES = {
  cmd = { is_list_of_strings, "a list of strings, such as { 'codespec', 'serve' }" },
  filetypes = { is_list_of_strings, "a list of file types, such as { 'python' }" },
  settings = { function(value) return type(value) == 'table' end, 'a table with the keys of codespec.toml' },
  auto_trigger = { is_boolean, 'true or false' },
  debounce_ms = { is_count, 'a number of milliseconds' },
  show_latency = { is_boolean, 'true or false' },
  max_file_kib = { is_count, 'a number of KiB' },
  native = { is_boolean, 'true, false or nil' },
  keys = { function(value) return type(value) == 'table' end, "a table, such as { accept = '<C-l>' }" },
}

local function is_key(value)
  return value == false or (type(value) == 'string' and value ~= '')
end

local function known(names)
  local list = vim.tbl_keys(names)
  table.sort(list)
  return table.concat(list, ', ')
end

local function read_keys(user, messages)
  local keys = {}
  for action, key in pairs(user) do
    if M.defaults.keys[action] == nil then
      table.insert(messages, ("keys.%s is unknown; there are %s"):format(tostring(action), known(M.defaults.keys)))
    elseif not is_key(key) then
      table.insert(messages, ("keys.%s must be a key, such as '<C-l>', or false"):format(action))
    else
      keys[action] = key
    end
  end
  return vim.tbl_extend('force', M.defaults.keys, keys)
end

-- The options with the user's over the defaults, and a message for each that cannot be used.
function M.read(user)
  local options, messages = vim.deepcopy(M.defaults), {}
  if user ~= nil and type(user) ~= 'table' then
    return options, { 'setup must be given a table' }
  end
  for name, value in pairs(user or {}) do
    local rule = RULES[name]
    if not rule then
      table.insert(messages, ('there is no option %s; there are %s'):format(tostring(name), known(RULES)))
    elseif not rule[1](value) then
      table.insert(messages, ('%s must be %s'):format(name, rule[2]))
    elseif name == 'keys' then
      options.keys = read_keys(value, messages)
    else
      options[name] = value
    end
  end
  if options.native == nil then
    options.native = vim.lsp.inline_completion ~= nil
  elseif options.native and not vim.lsp.inline_completion then
    table.insert(messages, 'native needs Neovim 0.12; the plugin draws by itself')
    options.native = false
  end
  table.sort(messages)
  return options, messages
end

return M
