-- The server of a folder: it is started with the first file, and again when it has died.

local launch = require('codespec.launch')
local tell = require('codespec.tell')

local M = {}

local api = vim.api
local uv = vim.uv or vim.loop

-- Where the name of a file type is not that of the protocol.
local LANGUAGES = { sh = 'shellscript', bash = 'shellscript' }

local MOST_CRASHES = 5
M.back_off_s = 1 -- before the first restart; twice as long before each further one

local QUIET_S = 60 -- so long a server has to live for the crashes before not to count
local LOADING_MS = 2000 -- after that the user is told what he waits for

-- What is known of the server of a folder.
--   id         of the client, nil while there is none
--   state      starting, restarting, failed or stopped, or what the server says: loading, ready, busy, failed, off
--   status     the latest codespec/status
--   percent    of loading
--   soon       whether it is about to be started
--   buffers    those that are to be attached: buffer -> true
--   crashes    in a row
--   commands   that the server knows
--   waiting    functions that are to be called once it can be talked to
local sessions = {} -- folder -> session
local options
local on_attach
local leaving = false
local missing = false -- the user was told that there is no program

-- Neovim 0.11 made functions of clients methods.
function M.call(client, name, ...)
  if vim.fn.has('nvim-0.11') == 1 then
    return client[name](client, ...)
  end
  return client[name](...)
end

function M.language(filetype)
  return LANGUAGES[filetype] or filetype
end

local function changed()
  vim.schedule(function()
    vim.cmd('redrawstatus')
    api.nvim_exec_autocmds('User', { pattern = 'CodespecStatus', modeline = false })
  end)
end

local function set_state(session, state)
  session.state = state
  changed()
end

-- The settings as the server reads them; an empty table would be sent as a list.
function M.settings()
  local pause = require('codespec.pause').settings()
  local settings = vim.tbl_deep_extend('force', options.settings, pause)
  return next(settings) and settings or vim.empty_dict()
end

local function on_status(session, status)
  session.status = status
  session.state = status.state
  if session.told_loading and status.state ~= 'loading' then
    session.told_loading = false
    if status.state ~= 'failed' then -- which the server tells itself
      tell.notify('the model is loaded')
    end
  end
  changed()
end

local LEVELS = { vim.log.levels.ERROR, vim.log.levels.WARN, vim.log.levels.INFO, vim.log.levels.INFO }

local function handlers_of(session)
  local progress = vim.lsp.handlers['$/progress']
  return {
    ['codespec/status'] = function(_, status)
      on_status(session, status)
    end,
    ['window/showMessage'] = function(_, message)
      tell.notify(message.message:gsub('^codespec: ', ''), LEVELS[message.type])
    end,
    ['window/logMessage'] = function(_, message)
      tell.log(message.message, LEVELS[message.type])
    end,
    ['$/progress'] = function(err, params, context, config)
      session.percent = params.value.kind ~= 'end' and params.value.percentage or nil
      changed()
      return progress(err, params, context, config)
    end,
  }
end

-- Once a server has ended before it said a word: tell what it says when it is run once more.
local function diagnose(session)
  set_state(session, 'failed')
  launch.last_words(options.cmd, function(last)
    local program = vim.fn.fnamemodify(options.cmd[1], ':t')
    tell.fail(('%s ended at once: %s (:checkhealth codespec)'):format(program, last or 'it says nothing'))
  end)
end

local function crashed(session, how)
  session.crashes = uv.now() - session.started > QUIET_S * 1000 and 1 or session.crashes + 1
  if session.crashes > MOST_CRASHES then
    set_state(session, 'failed')
    tell.fail(('given up after %d crashes (%s): :Codespec log, :Codespec restart'):format(MOST_CRASHES, how))
    return
  end
  local seconds = M.back_off_s * math.pow(2, session.crashes - 1)
  set_state(session, 'restarting')
  tell.warn(('the server has crashed (%s); it is started again in %g s'):format(how, seconds))
  session.timer = vim.defer_fn(function()
    session.timer = nil
    M.start(session)
  end, seconds * 1000)
end

local function on_exit(session, id, code, signal)
  if session.id ~= id then
    return -- another one has taken its place
  end
  session.id = nil
  session.status, session.percent = nil, nil
  for buffer in pairs(session.buffers) do
    require('codespec.engine').detach(buffer)
  end
  if leaving then
    return
  elseif code == 0 and (signal == 0 or signal == 15) then
    set_state(session, 'stopped') -- somebody wanted that
  elseif not session.initialized then
    diagnose(session)
  else
    crashed(session, signal ~= 0 and 'signal ' .. signal or 'code ' .. code)
  end
end

-- How vim.lsp is to start the server. From 0.8 on by a function, which keeps to itself how the server ended: Neovim
-- would make a message of that which the user has to confirm.
local function command_of(session)
  if vim.fn.has('nvim-0.8') == 0 then
    return options.cmd
  end
  return require('codespec.engine').command(function(dispatchers)
    local ended = dispatchers.on_exit
    dispatchers = vim.tbl_extend('force', dispatchers, {
      on_exit = function(code, signal)
        session.ended = { code, signal }
        ended(0, 0)
      end,
    })
    if vim.fn.has('nvim-0.10') == 1 then
      return vim.lsp.rpc.start(options.cmd, dispatchers)
    end
    return vim.lsp.rpc.start(options.cmd[1], { unpack(options.cmd, 2) }, dispatchers)
  end)
end

local function config_of(session)
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  capabilities.textDocument.inlineCompletion = { dynamicRegistration = false }
  return {
    name = 'codespec',
    cmd = command_of(session),
    root_dir = session.root ~= '' and session.root or nil,
    capabilities = capabilities,
    settings = { codespec = M.settings() },
    init_options = M.settings(),
    handlers = handlers_of(session),
    get_language_id = function(_, filetype)
      return M.language(filetype)
    end,
    -- The server reads with every key.
    flags = { debounce_text_changes = 0 },
    on_init = function(client, result)
      session.initialized = true
      client.offset_encoding = result.capabilities.positionEncoding or client.offset_encoding
      local commands = (result.capabilities.executeCommandProvider or {}).commands or {}
      session.commands = {}
      for _, command in ipairs(commands) do
        session.commands[command] = true
      end
      -- Neovim counts the client among the active ones only after this.
      vim.schedule(function()
        local waiting = session.waiting
        session.waiting = {}
        for _, callback in ipairs(waiting) do
          callback(session)
        end
      end)
    end,
    on_attach = function(client, buffer)
      -- Neovim 0.12 counts the buffer among those of the client only after this.
      vim.schedule(function()
        if session.buffers[buffer] and session.id == client.id then
          on_attach(client, buffer)
        end
      end)
    end,
    on_exit = function(code, signal, id)
      local ended = session.ended or { code, signal }
      vim.schedule(function()
        on_exit(session, id, unpack(ended))
      end)
    end,
  }
end

local function tell_missing(what)
  if not missing then
    missing = true
    tell.fail(what .. ' (:help codespec-missing)')
  end
end

-- Start the server of a folder.
function M.start(session)
  session.soon = false
  local program = options.cmd[1]
  if vim.fn.executable(program) == 0 then
    set_state(session, 'failed')
    tell_missing(('no program %s: install it or set cmd'):format(program))
    return
  end
  session.initialized = false
  session.ended = nil
  session.started = uv.now()
  set_state(session, 'starting')
  local notify = vim.notify
  vim.notify = function() end -- what Neovim says of a program that cannot be run is long, and names no remedy
  local started, id = pcall(launch.client, config_of(session))
  vim.notify = notify
  if not started or not id then
    set_state(session, 'failed')
    tell.log(tostring(id), vim.log.levels.ERROR)
    tell_missing(('%s cannot be run: is its Python gone?'):format(vim.fn.fnamemodify(program, ':t')))
    return
  end
  session.id = id
  for buffer in pairs(session.buffers) do
    if api.nvim_buf_is_loaded(buffer) then
      vim.lsp.buf_attach_client(buffer, id)
    else
      session.buffers[buffer] = nil
    end
  end
  vim.defer_fn(function()
    if session.id == id and vim.tbl_contains({ 'starting', 'loading' }, session.state) then
      session.told_loading = true
      local percent = session.percent and (', %d %%'):format(session.percent) or ''
      tell.notify(('loading the model%s; completions come when it is loaded'):format(percent))
    end
  end, LOADING_MS)
end

-- To start a program takes a moment, and so does what `vim.lsp` needs for it: the file is to be on the screen first, and
-- keys have their turn in between.
local function start_soon(session)
  session.soon = true
  set_state(session, 'starting')
  local function step()
    if not session.soon then
      return -- it was started by a command meanwhile
    elseif not next(session.buffers) then
      session.soon = false -- nobody wants it any more
    elseif launch.load_some() then
      vim.defer_fn(step, 0)
    else
      M.start(session)
    end
  end
  vim.defer_fn(step, 0)
end

-- Attach a buffer to the server of its folder.
function M.attach(buffer)
  local root = require('codespec.root').of(api.nvim_buf_get_name(buffer))
  local session = sessions[root]
  if not session then
    session = { root = root, buffers = {}, crashes = 0, commands = {}, waiting = {} }
    sessions[root] = session
  end
  if session.buffers[buffer] then
    return
  end
  session.buffers[buffer] = true
  api.nvim_create_autocmd('BufUnload', {
    buffer = buffer,
    once = true,
    callback = function()
      session.buffers[buffer] = nil
    end,
  })
  if session.id then
    vim.lsp.buf_attach_client(buffer, session.id)
  elseif not session.timer and not session.soon and session.state ~= 'failed' then
    start_soon(session)
  end
end

-- What is known of the server of a buffer; nil where it has none.
function M.session(buffer)
  for _, session in pairs(sessions) do
    if session.buffers[buffer] then
      return session
    end
  end
end

function M.sessions()
  return vim.tbl_values(sessions)
end

-- The client of a session, once it can be talked to.
function M.client(session)
  return session and session.id and session.initialized and vim.lsp.get_client_by_id(session.id) or nil
end

-- Call a function with a session once its server can be talked to, if it lives that long.
function M.when_initialized(session, callback)
  if M.client(session) then
    callback(session)
  else
    table.insert(session.waiting, callback)
  end
end

-- Run a command of the server; `done(err, result)` is called unless the server dies. Whether it was sent.
function M.execute(session, command, arguments, done)
  local client = M.client(session)
  if not client then
    return false
  end
  local params = { command = command, arguments = arguments }
  return M.call(client, 'request', 'workspace/executeCommand', params, vim.schedule_wrap(done or function() end))
end

-- Let all servers know the settings.
function M.push_settings()
  for _, session in pairs(sessions) do
    local client = M.client(session)
    if client then
      client.config.settings = { codespec = M.settings() }
      M.call(client, 'notify', 'workspace/didChangeConfiguration', { settings = { codespec = M.settings() } })
    end
  end
end

-- Start all servers anew.
function M.restart()
  missing = false
  for _, session in pairs(sessions) do
    local client = session.id and vim.lsp.get_client_by_id(session.id)
    session.id = nil -- its end is none of ours any more
    session.crashes = 0
    if session.timer then
      session.timer:stop()
      session.timer = nil
    end
    for buffer in pairs(session.buffers) do
      require('codespec.engine').detach(buffer)
    end
    if client then
      M.call(client, 'stop', true)
    end
    M.start(session)
  end
end

function M.setup(chosen, attached)
  options, on_attach = chosen, attached
  api.nvim_create_autocmd('VimLeavePre', {
    group = api.nvim_create_augroup('codespec.server', { clear = true }),
    callback = function()
      leaving = true
    end,
  })
end

return M
