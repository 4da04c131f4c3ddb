-- :Codespec and what it is told to do.

local server = require('codespec.server')
local tell = require('codespec.tell')

local M = {}

local api = vim.api

local CHOICES_MS = 3000 -- how long completing an argument waits for the server at most
local SCOPES = { 'buffer', 'language', 'all' }

local COUNTS = {
  'shown', 'accepted', 'accepted_partly', 'rejected', 'edits_shown', 'edits_applied', 'edits_rejected', 'edits_reverted',
}

local choices -- what the server says can be chosen

local function language_here()
  return server.language(vim.bo.filetype)
end

-- The server's answer to a command, or a message that it has none. One that is starting will answer.
local function ask(command, arguments, done)
  local session = server.session(api.nvim_get_current_buf())
  if not session then
    tell.warn('this file has no server: is its type among filetypes? (:checkhealth codespec)')
  elseif vim.tbl_contains({ 'failed', 'stopped' }, session.state) then
    tell.warn(('the server has %s (:Codespec log, :Codespec restart)'):format(session.state))
  else
    server.when_initialized(session, function()
      if not session.commands[command] then
        return tell.warn(('this server does not know %s: update codespec'):format(command))
      end
      server.execute(session, command, arguments, function(err, result)
        if err then
          tell.warn(err.message)
        else
          done(result)
        end
      end)
    end)
  end
end

local function names_of(found)
  local names = { draft = { 'auto', 'none' }, grammar = { 'auto', 'none' } }
  for _, model in ipairs(found.models or {}) do
    if model.role == 'draft' then
      table.insert(names.draft, model.value)
    end
  end
  vim.list_extend(names.grammar, found.grammars or {})
  return names
end

local function fetch_choices(done)
  ask('codespec.choices', {}, function(found)
    choices = names_of(found)
    done()
  end)
end

local function show_value(value)
  if value == nil or value == vim.NIL or value == '' then
    return '-'
  end
  return type(value) == 'number' and ('%g'):format(value) or tostring(value)
end

function M.status()
  ask('codespec.status', { language_here() }, function(status)
    local lines = { 'language: ' .. language_here() }
    for _, name in ipairs({ 'state', 'target', 'draft', 'grammar', 'enabled' }) do
      table.insert(lines, name .. ': ' .. show_value(status[name]))
    end
    local nothing = type(status.nothing) == 'table' and status.nothing.why or nil
    table.insert(lines, 'why nothing was shown last: ' .. show_value(nothing))
    for _, figure in ipairs({
      { 'acceptance', 'share of drafted tokens that were right' },
      { 'tokens_per_second', 'tokens per second' },
      { 'requests', 'requests' },
      { 'from_memory_share', 'share answered from memory' },
    }) do
      table.insert(lines, figure[2] .. ': ' .. show_value(status[figure[1]]))
    end
    local counts = type(status.statistics) == 'table' and status.statistics[language_here()]
    for _, name in ipairs(type(counts) == 'table' and COUNTS or {}) do
      table.insert(lines, ('%s: %s'):format(name:gsub('_', ' '), show_value(counts[name])))
    end
    table.insert(lines, 'paused: ' .. (require('codespec.pause').reason(api.nvim_get_current_buf()) or 'no'))
    tell.show('status', lines)
  end)
end

local COMMANDS = { draft = 'codespec.setDraft', grammar = 'codespec.setGrammar' }

local function choose(what, name, scope)
  local arguments = { name }
  if scope == 'file' then
    arguments = { name, '', vim.uri_from_bufnr(0) }
  elseif scope ~= 'all' then
    scope = scope or language_here()
    arguments = { name, scope }
  end
  ask(COMMANDS[what], arguments, function()
    tell.notify(('%s %s for %s'):format(what, name, scope == 'file' and 'this file' or scope))
  end)
end

local function choose_or_pick(what, arguments)
  if arguments[1] then
    return choose(what, arguments[1], arguments[2])
  end
  fetch_choices(function()
    vim.ui.select(choices[what], { prompt = ('codespec: %s for %s'):format(what, language_here()) }, function(name)
      if name then
        choose(what, name)
      end
    end)
  end)
end

local function pause(arguments, paused)
  local scope = arguments[1] or (paused and 'buffer' or require('codespec.pause').reason(api.nvim_get_current_buf()))
  if not scope then
    tell.notify('nothing is paused here')
  elseif not vim.tbl_contains(SCOPES, scope) then
    tell.warn(('%s: must be %s'):format(scope, table.concat(SCOPES, ', ')))
  else
    require('codespec.pause').set(scope, api.nvim_get_current_buf(), paused)
    require('codespec.engine').hide()
    vim.cmd('redrawstatus')
    local place = ({ buffer = 'in this buffer', language = 'for ' .. language_here(), all = 'everywhere' })[scope]
    tell.notify(('%s %s'):format(paused and 'paused' or 'resumed', place))
  end
end

local function snooze(arguments)
  local minutes = tonumber(arguments[1] or 5)
  if not minutes or minutes <= 0 or minutes > 24 * 60 then
    tell.warn(('%s: must be a number of minutes, 1440 at most'):format(arguments[1]))
    return
  end
  require('codespec.pause').snooze(minutes, function()
    vim.cmd('redrawstatus')
    tell.notify('resumed')
  end)
  require('codespec.engine').hide()
  vim.cmd('redrawstatus')
  tell.notify(('paused everywhere for %g minutes (:Codespec resume all)'):format(minutes))
end

local function log()
  local lines = { 'Neovim keeps what the server writes on standard error in ' .. require('vim.lsp.log').get_filename(), '' }
  local buffer = tell.show('log', vim.list_extend(lines, tell.logged()))
  api.nvim_win_set_cursor(vim.fn.bufwinid(buffer), { #lines, 0 })
end

local function trace()
  ask('codespec.trace', {}, function(found)
    require('codespec.trace').show(found)
  end)
end

-- Fetch a model that this machine can run, and complete with it.
local function models()
  tell.notify('measuring this machine')
  ask('codespec.suggestModels', {}, function(found)
    vim.ui.select(found, {
      prompt = 'codespec: get a model',
      format_item = function(each)
        local speed = each.on_gpu and 'fits the GPU' or ('about %d tokens/s'):format(math.max(1, each.tokens_per_second))
        return ('%s: %d MB, %s, %s'):format(each.model, each.download / 1e6, speed, each.licence)
      end,
    }, function(chosen)
      if chosen then
        tell.notify(('fetching %s (:Codespec models cancel)'):format(chosen.model))
        ask('codespec.getModel', { chosen.model }, function(done)
          tell.notify(done and chosen.model .. ' is the target now' or chosen.model .. ' was not fetched')
        end)
      end
    end)
  end)
end

local SUBCOMMANDS = {
  status = M.status,
  draft = function(arguments) choose_or_pick('draft', arguments) end,
  grammar = function(arguments) choose_or_pick('grammar', arguments) end,
  pause = function(arguments) pause(arguments, true) end,
  resume = function(arguments) pause(arguments, false) end,
  snooze = snooze,
  models = function(arguments)
    if arguments[1] == 'cancel' then
      ask('codespec.getModel', { 'cancel' }, function() end)
    else
      models()
    end
  end,
  edit = function() require('codespec').next_edit() end,
  restart = function()
    server.restart()
    tell.notify('the server is started again')
  end,
  log = log,
  trace = trace,
}

local function known()
  local names = vim.tbl_keys(SUBCOMMANDS)
  table.sort(names)
  return names
end

function M.run(words)
  local name = words[1] or 'status'
  if not require('codespec').options() then
    tell.warn("call require('codespec').setup() in init.lua first (:help codespec)")
  elseif not SUBCOMMANDS[name] then
    tell.warn(('there is no :Codespec %s (:help :Codespec)'):format(name))
  else
    SUBCOMMANDS[name]({ unpack(words, 2) })
  end
end

local function names_to_complete(what, lead)
  local session = server.session(api.nvim_get_current_buf())
  if not choices and server.client(session) and session.commands['codespec.choices'] then
    fetch_choices(function() end)
    vim.wait(CHOICES_MS, function()
      return choices ~= nil
    end, 20)
  end
  local names = choices and choices[what] or { 'auto', 'none' }
  return lead:find('[./\\]') and vim.fn.getcompletion(lead, 'file') or names
end

-- What may stand where the cursor is in the command line.
function M.complete(lead, line)
  local words = vim.split(vim.trim(line), '%s+')
  local place = #words - (lead == '' and 0 or 1) -- of the word, the command itself being 0
  local found = {}
  if place == 1 then
    found = known()
  elseif place == 2 and COMMANDS[words[2]] then
    found = names_to_complete(words[2], lead)
  elseif place == 2 and (words[2] == 'pause' or words[2] == 'resume') then
    found = SCOPES
  elseif place == 3 and COMMANDS[words[2]] then
    found = { language_here(), 'all', words[2] == 'grammar' and 'file' or nil }
  end
  return vim.tbl_filter(function(name)
    return vim.startswith(name, lead)
  end, found)
end

return M
