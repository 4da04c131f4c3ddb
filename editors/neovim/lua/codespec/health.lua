-- :checkhealth codespec

local M = {}

local PROGRAM_MS = 20000
local ANSWER_MS = 3000

-- Neovim 0.10 took `report_` from the names.
local function reporter(name)
  local health = vim.health or require('health')
  return health[name] or health['report_' .. name]
end

local function check_editor(options)
  local version = vim.version()
  local name = ('Neovim %d.%d.%d'):format(version.major, version.minor, version.patch)
  if vim.fn.has('nvim-0.7.2') == 0 then
    reporter('error')(name .. ' is too old', { '0.7.2 or newer is needed' })
  else
    reporter('ok')(name)
  end
  local how = options.native and "Neovim's own inline completion draws" or 'the plugin draws ghost text'
  reporter('info')(how)
end

-- What a program prints, and how it ended; nil where it does not end in time.
local function run(command)
  local lines, code = {}, nil
  local function collect(_, data)
    vim.list_extend(lines, data)
  end
  local job = vim.fn.jobstart(command, {
    stdout_buffered = true,
    stderr_buffered = true,
    on_stdout = collect,
    on_stderr = collect,
    on_exit = function(_, status)
      code = status
    end,
  })
  if job <= 0 then
    return nil, 'it cannot be run'
  end
  vim.fn.chanclose(job, 'stdin')
  vim.wait(PROGRAM_MS, function()
    return code ~= nil
  end, 20)
  if code == nil then
    vim.fn.jobstop(job)
  end
  return code, vim.trim(table.concat(lines, '\n'))
end

local function check_program(options)
  local remedies = {
    "install it: `pip install .` in codespec's folder, so that `codespec doctor` runs in a terminal",
    "or say where it is: setup{ cmd = { '/path/to/codespec', 'serve' } }",
  }
  local program = options.cmd[1]
  if vim.fn.executable(program) == 0 then
    reporter('error')('there is no program ' .. program, remedies)
    return
  end
  -- The server ends without a word when its input does, and says why if it cannot even begin.
  local code, output = run(options.cmd)
  if code and output == '' then
    reporter('ok')(vim.fn.exepath(program) .. ' runs')
  else
    local said = output ~= '' and output or 'it does not end in time'
    reporter('error')(('%s fails: %s'):format(table.concat(options.cmd, ' '), said), remedies)
  end
end

local function check_model(session, client)
  local server = require('codespec.server')
  local params = { command = 'codespec.status', arguments = {} }
  local answer = server.call(client, 'request_sync', 'workspace/executeCommand', params, ANSWER_MS)
  local status = answer and answer.result
  if type(status) ~= 'table' then
    reporter('warn')('the server does not answer', { ':Codespec log', ':Codespec restart' })
  elseif status.state == 'failed' then
    reporter('error')('the model could not be loaded', { ':Codespec log says why', '`codespec doctor` in a terminal' })
  else
    reporter('ok')(('the server is %s'):format(status.state))
    reporter('info')(('target: %s; draft: %s; grammar: %s'):format(status.target, status.draft, status.grammar))
  end
end

local function check_servers()
  local server = require('codespec.server')
  local sessions = server.sessions()
  if #sessions == 0 then
    reporter('info')('no server runs yet: it starts with the first file of the types in `filetypes`')
  end
  for _, session in ipairs(sessions) do
    local client = server.client(session)
    if client then
      reporter('ok')('a server runs for ' .. (session.root ~= '' and session.root or 'files outside any project'))
      check_model(session, client)
    else
      reporter('error')('the server is ' .. session.state, { ':Codespec log says why', ':Codespec restart' })
    end
  end
end

function M.check()
  reporter('start')('codespec')
  local options = require('codespec').options()
  if not options then
    reporter('error')('setup was not called', { "require('codespec').setup() in init.lua" })
    return
  end
  check_editor(options)
  check_program(options)
  check_servers()
end

return M
