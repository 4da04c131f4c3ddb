-- Inline completion for Neovim before 0.12: asks, draws what comes, and inserts it.

local M = {}

local api = vim.api

local METHOD = 'textDocument/inlineCompletion'
local AUTOMATIC = 2 -- InlineCompletionTriggerKind
local GROUP = api.nvim_create_augroup('codespec.ghost_text', { clear = true })
local NAMESPACE = api.nvim_create_namespace('codespec')

local attached = {} -- buffer -> { client = id, debounce_ms = n }
local timer = vim.loop.new_timer()
local latest = 0 -- number of the newest request; an answer to an older one does not count
local pending -- { client = id, request = id }

-- The completion that is drawn.
--   buffer, row   where it is, row from 1
--   start         byte of the line where it begins; it repeats what is typed from there to the cursor
--   text          what takes the place of the line from `start` on …
--   tail          … up to here: the bytes of the line that stay after it
--   after         the line after the cursor
--   command       what the server wants to be told, through `client`, when it is accepted
local shown

api.nvim_set_hl(0, 'CodespecGhostText', { link = 'Comment', default = true })

-- Neovim 0.11 made these functions methods.
local function call(client, name, ...)
  if vim.fn.has('nvim-0.11') == 1 then
    return client[name](client, ...)
  end
  return client[name](...)
end

local function forget_request()
  timer:stop()
  latest = latest + 1
  local client = pending and vim.lsp.get_client_by_id(pending.client)
  if client then
    call(client, 'cancel_request', pending.request)
  end
  pending = nil
end

local function hide()
  if shown and api.nvim_buf_is_valid(shown.buffer) then
    api.nvim_buf_clear_namespace(shown.buffer, NAMESPACE, 0, -1)
  end
  shown = nil
end

-- What of the completion is not typed yet; nil where none is shown, or it no longer fits what is typed.
local function remainder()
  if not shown or shown.buffer ~= api.nvim_get_current_buf() then
    return nil
  end
  local row, column = unpack(api.nvim_win_get_cursor(0))
  local line = api.nvim_get_current_line()
  if row ~= shown.row or column < shown.start or line:sub(column + 1) ~= shown.after then
    return nil
  end
  local typed = line:sub(shown.start + 1, column)
  if #typed < #shown.text and vim.startswith(shown.text, typed) then
    return shown.text:sub(#typed + 1)
  end
end

-- Tabs as spaces, which virtual text needs; `column` is where the text starts on the screen.
local function expand_tabs(text, column)
  local parts = {}
  for part, tab in text:gmatch('([^\t]*)(\t?)') do
    column = column + vim.fn.strdisplaywidth(part, column)
    local width = tab == '' and 0 or vim.fn.strdisplaywidth('\t', column)
    column = column + width
    table.insert(parts, part .. (' '):rep(width))
  end
  return table.concat(parts), column
end

-- Draw what is left of the completion, or nothing where it no longer fits.
local function draw()
  local text = remainder()
  if not text then
    return hide()
  end
  local lines = vim.split(text, '\n', { plain = true })
  local first, column = expand_tabs(lines[1], vim.fn.virtcol('.') - 1)
  -- The overlay covers the line after the cursor, which is therefore painted again behind it.
  local chunks = { { first, 'CodespecGhostText' }, { (expand_tabs(shown.after, column)), 'Normal' } }
  local below = {}
  for i = 2, #lines do
    below[i - 1] = { { (expand_tabs(lines[i], 0)), 'CodespecGhostText' } }
  end
  api.nvim_buf_clear_namespace(shown.buffer, NAMESPACE, 0, -1)
  api.nvim_buf_set_extmark(shown.buffer, NAMESPACE, shown.row - 1, api.nvim_win_get_cursor(0)[2], {
    virt_text = chunks,
    virt_text_pos = 'overlay',
    virt_lines = below,
    hl_mode = 'combine',
  })
end

-- Byte of a line from a column in the encoding of the protocol.
local function byte_column(line, character, encoding)
  return encoding == 'utf-8' and character or vim.str_byteindex(line, character, encoding == 'utf-16')
end

-- Show an item; one that replaces other lines than the cursor's is none of ours.
local function show(item, encoding)
  hide()
  local row, column = unpack(api.nvim_win_get_cursor(0))
  local line = api.nvim_get_current_line()
  local start, stop = column, column
  if item.range then
    local from, to = item.range.start, item.range['end']
    if from.line ~= row - 1 or to.line ~= row - 1 then
      return
    end
    start = byte_column(line, from.character, encoding)
    stop = byte_column(line, to.character, encoding)
  end
  if type(item.insertText) ~= 'string' or stop < column then
    return
  end
  local buffer = api.nvim_get_current_buf()
  shown = {
    buffer = buffer,
    row = row,
    start = start,
    text = item.insertText,
    tail = #line - stop,
    after = line:sub(column + 1),
    command = item.command,
    client = attached[buffer] and attached[buffer].client,
  }
  draw()
end

local function request()
  local buffer = api.nvim_get_current_buf()
  local client = attached[buffer] and vim.lsp.get_client_by_id(attached[buffer].client)
  if not client then
    return
  end
  local number = latest
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = AUTOMATIC }
  local sent, id = call(client, 'request', METHOD, params, vim.schedule_wrap(function(err, result)
    if number ~= latest then
      return
    end
    pending = nil
    -- null keeps what is shown, an empty list hides it.
    if not err and type(result) == 'table' then
      local item = (result.items or result)[1]
      if item then
        show(item, client.offset_encoding)
      else
        hide()
      end
    end
  end), buffer)
  pending = sent and { client = client.id, request = id } or nil
end

local function leave()
  forget_request()
  hide()
end

-- The text or the cursor has changed: keep what still fits, and ask again when the keyboard rests.
local function changed()
  forget_request()
  if vim.fn.pumvisible() == 1 then
    return hide()
  end
  draw()
  timer:start(attached[api.nvim_get_current_buf()].debounce_ms, 0, vim.schedule_wrap(request))
end

-- Ask for completions in a buffer while it is edited.
function M.attach(buffer, client_id, debounce_ms)
  attached[buffer] = { client = client_id, debounce_ms = debounce_ms }
  api.nvim_clear_autocmds({ group = GROUP, buffer = buffer })
  local function on(events, callback)
    api.nvim_create_autocmd(events, { group = GROUP, buffer = buffer, callback = function() callback() end })
  end
  on({ 'InsertEnter', 'TextChangedI', 'TextChangedP', 'CursorMovedI' }, changed)
  on({ 'InsertLeave', 'BufLeave' }, leave)
  on('BufDelete', function()
    attached[buffer] = nil
  end)
  if buffer == api.nvim_get_current_buf() and api.nvim_get_mode().mode == 'i' then
    changed()
  end
end

-- Insert what is shown; whether there was something.
function M.accept()
  local text = remainder()
  if not text then
    return false
  end
  local row, column = unpack(api.nvim_win_get_cursor(0))
  local stop = #api.nvim_get_current_line() - shown.tail
  local lines = vim.split(text, '\n', { plain = true })
  local client = shown.command and vim.lsp.get_client_by_id(shown.client)
  if client then
    local params = { command = shown.command.command, arguments = shown.command.arguments }
    call(client, 'request', 'workspace/executeCommand', params, function() end)
  end
  leave()
  api.nvim_buf_set_text(0, row - 1, column, row - 1, stop, lines)
  api.nvim_win_set_cursor(0, { row + #lines - 1, (#lines == 1 and column or 0) + #lines[#lines] })
  return true
end

-- Hide what is shown; whether there was something.
function M.dismiss()
  local was_shown = remainder() ~= nil
  leave()
  return was_shown
end

-- For <expr> mappings, which may not change the text themselves: the keys that do, nil where nothing is shown.
-- <C-g>u makes the completion one step of undo.
function M.accept_keys()
  return remainder() and "<C-g>u<Cmd>lua require('codespec.ghost_text').accept()<CR>" or nil
end

function M.dismiss_keys()
  return remainder() and "<Cmd>lua require('codespec.ghost_text').dismiss()<CR>" or nil
end

return M
