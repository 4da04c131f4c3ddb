-- Next edits: what the server offers to change next, a key to go there and to apply it, and one to drop it. Completions
-- at the cursor go first: beside ghost text, the menu or a snippet there is no edit.

local columns = require('codespec.columns')
local draw = require('codespec.edit_drawing')
local pause = require('codespec.pause')
local server = require('codespec.server')
local tell = require('codespec.tell')

local M = {}

local api = vim.api
local uv = vim.uv or vim.loop

local METHOD, FOCUS = 'codespec/inlineEdit', 'textDocument/didFocus'
local INVOKED, AUTOMATIC = 1, 2 -- InlineCompletionTriggerKind
local PAUSE_MS = 350 -- the keyboard has to rest before an edit is asked for by itself: ghost text comes first
local NEAR = 2 -- lines on each side of an edit from where it is applied at once

local GROUP = api.nvim_create_augroup('codespec.next_edit', { clear = true })

local timer = uv.new_timer()
local options
local latest = 0 -- number of the newest request; an answer to an older one does not count
local pending -- { client = id, request = id }
local drawn = {} -- buffers
local seen = {} -- buffer -> the state that was asked for, or from where on changes count

-- What is offered.
--   id       by which the server knows it
--   uri      of its document
--   encoding of its columns
--   hunks    each a range and a text
--   buffer   that of the document
--   ticks    the states of the buffers that it concerns, its own and the one that it was asked for in: any change ends it
local offer

local function engine()
  return require('codespec.engine')
end

local function in_snippet()
  return vim.snippet ~= nil and vim.snippet.active() or false
end

local function may_show()
  local mode = api.nvim_get_mode().mode:sub(1, 1)
  local free = (mode == 'n' or mode == 'i') and vim.fn.pumvisible() == 0 and not in_snippet()
  local buffer = api.nvim_get_current_buf()
  local concerned = engine().client(buffer) ~= nil and vim.bo.modifiable and not (offer and not offer.ticks[buffer])
  return free and concerned and not engine().remainder() and not pause.reason(buffer)
end

-- Whether an edit is on the screen, or a hint at one: then the keys are its own.
function M.is_shown()
  return offer ~= nil and next(drawn) ~= nil and may_show()
end

local function clear()
  for buffer in pairs(drawn) do
    draw.clear(buffer)
  end
  drawn = {}
end

local function is_current()
  for buffer, tick in pairs(offer.ticks) do
    if not api.nvim_buf_is_valid(buffer) or api.nvim_buf_get_changedtick(buffer) ~= tick then
      return false
    end
  end
  return true
end

local function is_here()
  return offer.buffer == api.nvim_get_current_buf()
end

local function first_row()
  return offer.hunks[1].range.start.line
end

-- Row and byte, both from 0, of a position in the offer's buffer.
local function place(position)
  local line = api.nvim_buf_get_lines(offer.buffer, position.line, position.line + 1, false)[1] or ''
  return { position.line, columns.byte(line, position.character, offer.encoding) }
end

-- Whether the cursor is so near to the edit, and its beginning on the screen, that the user sees what would change.
local function is_near()
  if not is_here() then
    return false
  end
  local row, start = api.nvim_win_get_cursor(0)[1] - 1, place(offer.hunks[1].range.start)
  local first, last = start[1], offer.hunks[#offer.hunks].range['end'].line
  local near = row >= first - NEAR and row <= last + NEAR
  local on_screen = first >= vim.fn.line('w0') - 1 and first <= vim.fn.line('w$') - 1
  -- Nor is what lies beside the window where lines do not wrap, or in a closed fold.
  return near and on_screen and vim.fn.foldclosed(first + 1) == -1 and vim.fn.screenpos(0, first + 1, start[2] + 1).col > 0
end

local function placed_hunks()
  return vim.tbl_map(function(hunk)
    return { start = place(hunk.range.start), stop = place(hunk.range['end']), text = hunk.text }
  end, offer.hunks)
end

local function key_name()
  return options.keys.accept and options.keys.accept:gsub('^<(.*)>$', '%1') or 'apply_edit()'
end

local function say_what_the_key_does()
  local buffer = api.nvim_get_current_buf()
  drawn[buffer] = true
  if is_near() then
    draw.hint(buffer, first_row(), key_name() .. ': apply')
    return
  end
  local file = is_here() and '' or vim.fn.fnamemodify(vim.uri_to_fname(offer.uri), ':t') .. ', '
  local text = ('%s: jump to %sline %d'):format(key_name(), file, first_row() + 1)
  draw.hint(buffer, api.nvim_win_get_cursor(0)[1] - 1, text)
end

-- Draw what is offered, where something may be drawn now.
function M.redraw()
  if not offer and not next(drawn) then
    return
  end
  clear()
  if offer and not is_current() then
    offer = nil -- the file was read anew, of which no other event tells
  end
  if offer and may_show() then
    if is_here() then
      drawn[offer.buffer] = true
      draw.draw(offer.buffer, placed_hunks())
    end
    say_what_the_key_does()
  end
end

-- Nobody wants what is offered any more, nor the answer that is awaited.
function M.forget()
  timer:stop()
  latest = latest + 1
  local client = pending and vim.lsp.get_client_by_id(pending.client)
  if client then
    server.call(client, 'cancel_request', pending.request)
  end
  pending, offer = nil, nil
  clear()
end

-- Take an answer for a buffer; whether there is an edit now.
local function answer(result, encoding, asked)
  local edit = type(result) == 'table' and type(result.edits) == 'table' and result.edits[1]
  if not edit then
    return false
  end
  local buffer = vim.uri_to_bufnr(edit.textDocument.uri)
  offer = { id = edit.command.arguments[1], uri = edit.textDocument.uri, encoding = encoding, hunks = edit.hunks }
  offer.buffer, offer.ticks = buffer, {}
  for _, each in ipairs({ buffer, asked }) do
    offer.ticks[each] = api.nvim_buf_get_changedtick(each)
  end
  M.redraw()
  return true
end

-- Ask the server; `done` is called with whether there is an edit, unless something else has happened meanwhile, or the
-- server has told why it has no answer.
local function ask(kind, done)
  local buffer = api.nvim_get_current_buf()
  local client = engine().client(buffer)
  M.forget()
  if not client then
    return done(false)
  end
  local number, tick = latest, api.nvim_buf_get_changedtick(buffer)
  seen[buffer] = tick
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.textDocument.version = vim.lsp.util.buf_versions[buffer] or tick
  params.context = { triggerKind = kind }
  local sent, id = server.call(client, 'request', METHOD, params, vim.schedule_wrap(function(err, result)
    if number ~= latest then
      return
    end
    pending = nil
    if result == nil or result == vim.NIL then
      return
    end
    local current = api.nvim_buf_is_valid(buffer) and tick == api.nvim_buf_get_changedtick(buffer)
    done(current and not err and answer(result, client.offset_encoding, buffer))
  end), buffer)
  pending = sent and { client = client.id, request = id } or nil
end

-- Why no edit can be asked for; nil where one can.
local function obstacle()
  local buffer = api.nvim_get_current_buf()
  local session = server.session(buffer)
  if pause.reason(buffer) then
    return 'paused here (:Codespec resume)'
  end
  if not engine().client(buffer) then
    return session and session.state == 'starting' and 'the server is starting' or 'no server runs for this file'
  end
  if session and session.status and session.status.edits_mode == 'off' then
    return "next edits are switched off (edits.mode = 'off')"
  end
  if in_snippet() then
    return 'no next edit within a snippet'
  end
end

-- Show the next edit, because the user wants it.
function M.next()
  local why = obstacle()
  if why then
    tell.notify(why)
    return
  end
  engine().hide()
  ask(INVOKED, function(found)
    if not found then
      tell.notify('there is no next edit')
    end
  end)
end

local function jump()
  vim.cmd("normal! m'")
  if not is_here() and not pcall(vim.cmd, 'buffer ' .. offer.buffer) then
    vim.cmd('sbuffer ' .. offer.buffer) -- this window has to keep what it shows
  end
  if not offer then
    return -- the file was read anew
  end
  local start = place(offer.hunks[1].range.start)
  api.nvim_win_set_cursor(0, { start[1] + 1, start[2] })
  vim.cmd('normal! zv')
  M.redraw()
end

local function apply()
  local buffer, hunks = offer.buffer, placed_hunks()
  local session = server.session(buffer)
  if session then
    server.execute(session, 'codespec.acceptEdit', { offer.id })
  end
  M.forget()
  local last = hunks[#hunks]
  local behind = api.nvim_create_namespace('codespec.behind')
  for index = #hunks, 1, -1 do
    local hunk = hunks[index]
    local lines = vim.split(hunk.text, '\n', { plain = true })
    api.nvim_buf_set_text(buffer, hunk.start[1], hunk.start[2], hunk.stop[1], hunk.stop[2], lines)
    if hunk == last then -- which moves with what is applied before it
      local row = hunk.start[1] + #lines - 1
      last.mark = api.nvim_buf_set_extmark(buffer, behind, row, (#lines == 1 and hunk.start[2] or 0) + #lines[#lines], {})
    end
  end
  local row, column = unpack(api.nvim_buf_get_extmark_by_id(buffer, behind, last.mark, {}))
  api.nvim_buf_del_extmark(buffer, behind, last.mark)
  api.nvim_win_set_cursor(0, { row + 1, column })
  ask(INVOKED, function() end)
end

-- Go to the edit; where the cursor is there, apply it and ask for the one after it. Whether there was one.
function M.jump_or_apply()
  if not M.is_shown() then
    return false
  end
  if not is_current() then
    M.forget()
  elseif is_near() then
    apply()
  else
    jump()
  end
  return true
end

-- Hide the edit, and have it not offered again; whether there was one.
function M.drop()
  if not M.is_shown() then
    return false
  end
  local session = server.session(api.nvim_get_current_buf())
  if session then
    server.execute(session, 'codespec.rejectEdit', { offer.id })
  end
  M.forget()
  return true
end

-- The text has changed, or the cursor: what is offered is for one state of the text, and drawn by where the cursor is.
local function changed(buffer)
  if offer and offer.ticks[buffer] and is_current() then
    M.redraw()
    return
  end
  if seen[buffer] == api.nvim_buf_get_changedtick(buffer) then
    return
  end
  M.forget()
  seen[buffer] = api.nvim_buf_get_changedtick(buffer)
  local session = server.session(buffer)
  if session and session.status and session.status.edits_mode == 'automatic' then
    timer:start(PAUSE_MS, 0, vim.schedule_wrap(function()
      if buffer == api.nvim_get_current_buf() and may_show() then
        ask(AUTOMATIC, function() end)
      end
    end))
  end
end

local function focused(client, buffer)
  server.call(client, 'notify', FOCUS, { textDocument = { uri = vim.uri_from_bufnr(buffer) } })
  M.redraw()
end

-- Offer edits in a buffer that a client knows.
function M.attach(client, buffer)
  api.nvim_clear_autocmds({ group = GROUP, buffer = buffer })
  local function on(events, callback)
    api.nvim_create_autocmd(events, { group = GROUP, buffer = buffer, callback = callback })
  end
  seen[buffer] = api.nvim_buf_get_changedtick(buffer)
  on({ 'TextChanged', 'TextChangedI', 'TextChangedP', 'CursorMoved', 'CursorMovedI' }, function()
    changed(buffer)
  end)
  on({ 'ModeChanged', 'CompleteDone', 'CompleteChanged', 'BufLeave' }, function()
    vim.schedule(M.redraw)
  end)
  on('BufEnter', function()
    focused(client, buffer)
  end)
  if buffer == api.nvim_get_current_buf() then
    focused(client, buffer)
  end
end

-- The client of a buffer is gone.
function M.detach(buffer)
  seen[buffer] = nil
  if offer and offer.buffer == buffer or buffer == api.nvim_get_current_buf() then
    M.forget()
  end
  if api.nvim_buf_is_valid(buffer) then
    api.nvim_clear_autocmds({ group = GROUP, buffer = buffer })
  end
end

function M.setup(chosen)
  options = chosen
  draw.define_highlights()
  api.nvim_create_autocmd('ColorScheme', { group = GROUP, callback = draw.define_highlights })
end

return M
