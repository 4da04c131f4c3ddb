-- Inline completion from `codespec serve`.
--
-- Neovim 0.12 and later draw and accept inline completions themselves; before that, from 0.7.2 on, ghost_text.lua
-- does. Everything else lives in the server: see docs/editors.md for a configuration without this plugin.

local M = {}

local defaults = {
  cmd = { 'codespec', 'serve' },
  filetypes = {
    'python', 'json', 'javascript', 'typescript', 'c', 'cpp', 'go', 'rust', 'java', 'sh', 'sql', 'yaml', 'toml', 'html',
  },
  -- The keys of codespec.toml.
  settings = {},
  -- How long the keyboard has to rest before a request; Neovim 0.12 has its own delay.
  debounce_ms = 60,
  -- false leaves a key alone.
  keys = { accept = '<Tab>', dismiss = '<C-]>' },
}

local ROOT_MARKERS = { 'codespec.toml', 'pyproject.toml', '.git' }

-- Where the name of a file type is not that of the protocol.
local LANGUAGE_IDS = { sh = 'shellscript', bash = 'shellscript' }

local NATIVE = vim.fn.has('nvim-0.12') == 1

local options = defaults
local clients = {} -- folder -> client id, before 0.12

local function language_id(_, filetype)
  return LANGUAGE_IDS[filetype] or filetype
end

-- What vim.lsp.config and vim.lsp.start_client have in common.
local function client_config()
  return {
    name = 'codespec',
    cmd = options.cmd,
    get_language_id = language_id,
    -- An empty table would be sent as a list.
    init_options = next(options.settings) and options.settings or nil,
  }
end

local function map(buffer, key, callback, description)
  if key then
    vim.keymap.set('i', key, callback, { buffer = buffer, expr = true, silent = true, desc = description })
  end
end

-- Keys that do their work where a completion is shown and are themselves where none is.
local function map_keys(buffer, accept, dismiss)
  local keys = options.keys
  map(buffer, keys.accept, function() return accept() or keys.accept end, 'Accept the inline completion')
  map(buffer, keys.dismiss, function() return dismiss() or keys.dismiss end, 'Dismiss the inline completion')
end

local function setup_native(group)
  local config = client_config()
  config.filetypes = options.filetypes
  config.root_markers = ROOT_MARKERS
  vim.lsp.config('codespec', config)
  vim.api.nvim_create_autocmd('LspAttach', {
    group = group,
    callback = function(event)
      local client = vim.lsp.get_client_by_id(event.data.client_id)
      if not client or client.name ~= 'codespec' then
        return
      end
      vim.lsp.inline_completion.enable(true, { bufnr = event.buf })
      map_keys(event.buf, function()
        return vim.lsp.inline_completion.get() and ''
      end, function()
        return vim.lsp.inline_completion.get({ on_accept = function() end }) and ''
      end)
    end,
  })
  vim.lsp.enable('codespec')
end

-- The nearest folder upwards with one of the markers.
local function root_of(path)
  local folder = vim.fn.fnamemodify(path, ':p:h')
  while true do
    for _, marker in ipairs(ROOT_MARKERS) do
      if vim.loop.fs_stat(folder .. '/' .. marker) then
        return folder
      end
    end
    local parent = vim.fn.fnamemodify(folder, ':h')
    if parent == folder then
      return nil
    end
    folder = parent
  end
end

local function start_client(root)
  local config = client_config()
  config.root_dir = root
  config.capabilities = vim.lsp.protocol.make_client_capabilities()
  config.capabilities.textDocument.inlineCompletion = { dynamicRegistration = false }
  -- Only now is the document open, and can be completed.
  config.on_attach = function(client, buffer)
    local ghost_text = require('codespec.ghost_text')
    ghost_text.attach(buffer, client.id, options.debounce_ms)
    map_keys(buffer, ghost_text.accept_keys, ghost_text.dismiss_keys)
  end
  config.on_exit = function(code)
    clients[root or ''] = nil
    if code ~= 0 then
      vim.schedule(function()
        local message = 'codespec: the server has ended with code %d; %s says why, :edit starts it again'
        vim.notify(message:format(code, vim.lsp.get_log_path()), vim.log.levels.ERROR)
      end)
    end
  end
  return vim.lsp.start_client(config)
end

local function attach(buffer)
  local path = vim.api.nvim_buf_get_name(buffer)
  if path == '' or vim.bo[buffer].buftype ~= '' then
    return
  end
  local root = root_of(path)
  local id = clients[root or ''] or start_client(root)
  clients[root or ''] = id
  if id then
    vim.lsp.buf_attach_client(buffer, id)
  end
end

local function setup_own(group)
  vim.api.nvim_create_autocmd('FileType', {
    group = group,
    pattern = options.filetypes,
    callback = function(event)
      attach(event.buf)
    end,
  })
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) and vim.tbl_contains(options.filetypes, vim.bo[buffer].filetype) then
      attach(buffer)
    end
  end
end

-- Start the server for files of these types; `user` takes the place of the defaults above, key by key.
function M.setup(user)
  options = vim.tbl_deep_extend('force', defaults, user or {})
  if vim.fn.executable(options.cmd[1]) == 0 then
    local remedy = "install it, or name it in require('codespec').setup{ cmd = { '/path/to/codespec', 'serve' } }"
    vim.notify(('codespec: there is no program %s; %s'):format(options.cmd[1], remedy), vim.log.levels.ERROR)
    return
  end
  local group = vim.api.nvim_create_augroup('codespec', { clear = true })
  if NATIVE then
    setup_native(group)
  else
    setup_own(group)
  end
end

return M
