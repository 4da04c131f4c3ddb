-- Completion by Neovim's own vim.lsp.inline_completion, from 0.12 on. Answers pass through here on their way to it:
-- stale ones are dropped, and items begin at the cursor, since Neovim hides the line behind it otherwise.

local suggestion = require('codespec.suggestion')

local M = {}

local api = vim.api

local NAMESPACE = api.nvim_create_namespace('nvim.lsp.inline_completion')

local options
local engine
local deliver = {} -- buffer -> function(err, result), which has Neovim show other items than it asked for
local dismissed -- the place where the user does not want a completion

-- A suggestion as a list of items that begin where the cursor is now, and the number of the one in question.
local function to_items(shown, encoding)
  local column = api.nvim_win_get_cursor(0)[2]
  local line = api.nvim_get_current_line()
  local typed = line:sub(shown.start + 1, column)
  local position = { line = shown.row - 1, character = vim.str_utfindex(line, encoding, column, false) }
  local items, index = {}, 1
  for number, item in ipairs(shown.items) do
    if vim.startswith(item.text, typed) then
      local range = { start = position, ['end'] = position }
      table.insert(items, { insertText = item.text:sub(#typed + 1), range = range, command = item.command })
      index = number == shown.index and #items or index
    end
  end
  return { items = items }, index
end

local function intercept(request, buffer, params, callback, ...)
  deliver[buffer] = callback
  local client = engine.client(buffer)
  local place = engine.place()
  if not client or not options.auto_trigger or not engine.may_show() or vim.deep_equal(place, dismissed) then
    return false
  end
  return request(engine.METHOD, params, function(err, result, ...)
    local shown
    if not err and type(result) == 'table' and not engine.is_stale(place) then
      shown = engine.answer(result, client.offset_encoding)
      result = shown and (to_items(shown, client.offset_encoding)) or { items = {} }
    else
      result = nil -- which keeps what is shown
    end
    callback(err, result, ...)
  end, ...)
end

-- A function that starts the server as `start` does, and has its answers pass through here.
function M.command(start)
  return function(dispatchers)
    local rpc = start(dispatchers)
    local request = rpc.request
    rpc.request = function(method, params, callback, ...)
      if method == engine.METHOD and params.context.triggerKind == engine.AUTOMATIC then
        return intercept(request, vim.uri_to_bufnr(params.textDocument.uri), params, callback, ...)
      end
      return request(method, params, callback, ...)
    end
    return rpc
  end
end

-- Neovim has drawn what it knows: hide what does not fit any more.
function M.changed()
  engine.keep()
end

function M.forget_request() end

function M.leave() end -- Neovim hides it

function M.dismissed(place)
  dismissed = place
end

function M.show(shown, _, hint)
  local feed, client = deliver[shown.buffer], engine.client(shown.buffer)
  if not feed or not client then
    return
  end
  local items, index = to_items(shown, client.offset_encoding)
  feed(nil, items)
  if hint then
    vim.lsp.inline_completion.select({ bufnr = shown.buffer, count = index - 1 })
  end
end

function M.hide(shown)
  local feed = deliver[shown.buffer]
  if feed and api.nvim_buf_is_valid(shown.buffer) then
    feed(nil, { items = {} })
  end
end

-- The text that Neovim has drawn, without its hint.
local function drawn(buffer)
  for _, mark in ipairs(api.nvim_buf_get_extmarks(buffer, NAMESPACE, 0, -1, { details = true })) do
    local lines = { mark[4].virt_text and mark[4].virt_text[1][1] or '' }
    for _, chunks in ipairs(mark[4].virt_lines or {}) do
      table.insert(lines, chunks[1][1])
    end
    return table.concat(lines, '\n')
  end
end

-- The user may have chosen among the items by other means than ours.
function M.sync(shown)
  local text = drawn(shown.buffer)
  local before = shown.index
  for index = 1, #shown.items do
    shown.index = index
    if suggestion.remainder(shown) == text then
      shown.chosen = shown.chosen or index ~= before
      return
    end
  end
  shown.index = before
end

function M.attach(_, buffer)
  vim.lsp.inline_completion.enable(true, { bufnr = buffer })
  -- Where it was enabled before, for a server that has died, Neovim takes up the new one a moment after this.
  vim.schedule(function()
    if buffer == api.nvim_get_current_buf() and api.nvim_get_mode().mode == 'i' then
      -- It asks when the cursor moves, which the user may have done already.
      api.nvim_exec_autocmds('CursorMovedI', { buffer = buffer, modeline = false })
    end
  end)
end

-- Neovim takes no items of a client that is gone.
function M.detach(buffer)
  deliver[buffer] = nil
  if api.nvim_buf_is_valid(buffer) then
    api.nvim_buf_clear_namespace(buffer, NAMESPACE, 0, -1)
  end
end

function M.setup(chosen)
  options = chosen
  engine = require('codespec.engine')
end

return M
