-- What is offered at the cursor, and what the user does with it. Drawing, and asking while the user types, is up to
-- ghost_text.lua, or to native.lua where Neovim does both.

local insert = require('codespec.insert')
local next_edit = require('codespec.next_edit')
local pause = require('codespec.pause')
local server = require('codespec.server')
local suggestion = require('codespec.suggestion')
local tell = require('codespec.tell')

local M = {}

local api = vim.api
local uv = vim.uv or vim.loop

M.METHOD = 'textDocument/inlineCompletion'
M.INVOKED, M.AUTOMATIC = 1, 2 -- InlineCompletionTriggerKind

local GROUP = api.nvim_create_augroup('codespec.engine', { clear = true })

local backend
local attached = {} -- buffer -> client id
local shown -- a suggestion
local show_latency

-- Where an answer belongs: it is stale anywhere else.
function M.place()
  local window = api.nvim_get_current_win()
  local row, column = unpack(api.nvim_win_get_cursor(window))
  local buffer = api.nvim_get_current_buf()
  return { buffer, api.nvim_buf_get_changedtick(buffer), window, row, column }
end

function M.is_stale(place)
  return not vim.deep_equal(place, M.place()) or not M.may_show()
end

-- Whether there may be ghost text now: not outside Insert mode, and the menu of completions has precedence.
function M.may_show()
  local mode = api.nvim_get_mode().mode
  return mode:sub(1, 1) == 'i' and vim.fn.pumvisible() == 0 and not pause.reason(api.nvim_get_current_buf())
end

function M.client(buffer)
  local id = attached[buffer]
  return id and vim.lsp.get_client_by_id(id)
end

-- What of the completion that is shown is not typed yet; nil where none is, or it no longer fits.
function M.remainder()
  return suggestion.remainder(shown)
end

function M.hide()
  if shown then
    backend.hide(shown)
    shown = nil
    next_edit.redraw()
  end
end

-- What stands behind what is shown: which of several it is, and how long it took.
local function hint()
  local parts = {}
  if shown.chosen and #shown.items > 1 then
    table.insert(parts, ('(%d/%d)'):format(shown.index, #shown.items))
  end
  if show_latency and shown.ms then
    table.insert(parts, ('%d ms'):format(shown.ms))
  end
  return #parts > 0 and table.concat(parts, ' ') or nil
end

local function paint()
  next_edit.redraw() -- which goes where ghost text comes
  backend.show(shown, M.remainder(), hint())
end

-- Keep what still fits after the user has typed or moved; whether something does.
function M.keep()
  if not shown then
    return false
  elseif not M.may_show() or not M.remainder() then
    M.hide()
    return false
  end
  paint()
  return true
end

-- Take an answer for this place: null keeps what is shown, an empty list hides it. Returns what is shown now. `began` is
-- when the plugin asked for it, by `uv.hrtime`.
function M.answer(result, encoding, began)
  if type(result) ~= 'table' then
    return shown
  end
  M.hide()
  shown = suggestion.from(result.items or result, encoding)
  if shown and began then
    shown.ms = (uv.hrtime() - began) / 1e6
  end
  next_edit.redraw()
  return shown
end

local function leave()
  backend.leave()
  M.hide()
end

local function report(command, arguments)
  local session = server.session(shown.buffer)
  if session then
    server.execute(session, command, arguments)
  end
end

local function identifier()
  local command = shown.items[shown.index].command
  return command and command.arguments and command.arguments[1]
end

local function report_accepted(rest)
  local item = shown.items[shown.index]
  if rest == '' and item.command then
    report(item.command.command, item.command.arguments)
  elseif identifier() then
    report('codespec.acceptPartial', { identifier(), item.offered:sub(1, #item.offered - #rest) })
  end
end

-- Insert what is shown: `all`, the next `word` or the rest of the `line`; whether there was something.
function M.accept(kind)
  if not shown or not M.remainder() then
    return false
  end
  backend.sync(shown)
  local text = M.remainder()
  local part = suggestion.part(text, kind)
  local rest = text:sub(#part + 1)
  local lines = vim.split(part, '\n', { plain = true })
  backend.forget_request()
  report_accepted(rest)
  insert.at_cursor(lines)
  if rest == '' then
    M.hide()
  else
    if #lines > 1 then
      suggestion.advance(shown, lines, rest)
    end
    paint()
  end
  return true
end

-- Hide what is shown until the text changes; whether there was something.
function M.dismiss()
  if not M.remainder() then
    return false
  end
  backend.sync(shown)
  if identifier() then
    report('codespec.reject', { identifier() })
  end
  backend.dismissed(M.place())
  M.hide()
  return true
end

-- Ask at once, for alternatives too; `done` is called with the suggestion that is then shown, or nil.
local function ask(done)
  local buffer = api.nvim_get_current_buf()
  local client = M.client(buffer)
  if not client then
    tell.notify('there is no server for this file (:Codespec status)')
    return
  end
  local place = M.place()
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = M.INVOKED }
  local began = uv.hrtime()
  backend.forget_request()
  server.call(client, 'request', M.METHOD, params, vim.schedule_wrap(function(err, result)
    if not M.is_stale(place) and not err then
      done(M.answer(result, client.offset_encoding, began))
    end
  end), buffer)
end

-- Ask for completions by a key.
function M.trigger()
  if pause.reason(api.nvim_get_current_buf()) then
    tell.notify('paused here (:Codespec resume)')
    return
  end
  ask(function(found)
    if found then
      paint()
    else
      tell.notify('there is no completion here')
    end
  end)
end

local function turn(step)
  shown.index = (shown.index - 1 + step) % #shown.items + 1
  shown.chosen = true
  if M.remainder() then
    paint()
  end
end

-- Show another alternative; `step` is 1 or -1. Whether something was shown.
function M.cycle(step)
  local text = M.remainder()
  if not text then
    return false
  end
  backend.sync(shown)
  if #shown.items > 1 then
    turn(step)
    return true
  end
  ask(function(found)
    if not found or #found.items < 2 then
      tell.notify('there are no other completions here')
    end
    if found then
      -- What was shown is no alternative to itself.
      turn(M.remainder() == text and step or 0)
    end
  end)
  return true
end

-- Offer completions in a buffer that a client knows.
function M.attach(client, buffer)
  attached[buffer] = client.id
  backend.attach(client, buffer)
  next_edit.attach(client, buffer)
  api.nvim_clear_autocmds({ group = GROUP, buffer = buffer })
  local function on(events, callback)
    api.nvim_create_autocmd(events, { group = GROUP, buffer = buffer, callback = function() callback() end })
  end
  on({ 'InsertEnter', 'TextChangedI', 'TextChangedP', 'CursorMovedI', 'CompleteDone' }, backend.changed)
  on('CompleteChanged', M.hide)
  on({ 'InsertLeave', 'BufLeave', 'WinLeave' }, leave)
  if buffer == api.nvim_get_current_buf() and api.nvim_get_mode().mode == 'i' then
    backend.changed()
  end
end

-- The client of a buffer is gone.
function M.detach(buffer)
  backend.detach(buffer)
  next_edit.detach(buffer)
  if shown and shown.buffer == buffer then
    leave()
  end
  attached[buffer] = nil
  if api.nvim_buf_is_valid(buffer) then
    api.nvim_clear_autocmds({ group = GROUP, buffer = buffer })
  end
end

-- A function that starts the server as `start` does.
function M.command(start)
  return backend.command(start)
end

function M.setup(options)
  backend = require(options.native and 'codespec.native' or 'codespec.ghost_text')
  show_latency = options.show_latency and not options.native
  backend.setup(options)
  next_edit.setup(options)
end

return M
