-- How a next edit looks: what goes is struck out, what comes stands beside or below it, and where the edit is elsewhere
-- there is a hint behind the line with the cursor.

local M = {}

local api = vim.api

local NAMESPACE = api.nvim_create_namespace('codespec.edit')
local REMOVED, ADDED, HINT = 'CodespecEditRemoved', 'CodespecEditAdded', 'CodespecHint'
local INLINE = vim.fn.has('nvim-0.10') == 1
local ABOVE_SYNTAX = 300 -- priority

-- The colours of the highlight group of a name, in the form that nvim_set_hl takes.
local function colours_of(name)
  local found, group = pcall(api.nvim_get_hl_by_name, name, true)
  return found and { fg = group.foreground, bg = group.background } or {}
end

function M.define_highlights()
  local removed = vim.tbl_extend('force', colours_of('DiffDelete'), { strikethrough = true, default = true })
  api.nvim_set_hl(0, REMOVED, removed)
  api.nvim_set_hl(0, ADDED, { link = 'DiffAdd', default = true })
  api.nvim_set_hl(0, HINT, { link = 'NonText', default = true })
end

function M.clear(buffer)
  if buffer and api.nvim_buf_is_valid(buffer) then
    api.nvim_buf_clear_namespace(buffer, NAMESPACE, 0, -1)
  end
end

local function mark(buffer, row, column, details)
  details.priority = ABOVE_SYNTAX
  api.nvim_buf_set_extmark(buffer, NAMESPACE, row, column, details)
end

local function shown(text)
  return { { (text:gsub('\t', (' '):rep(vim.bo.tabstop))), ADDED } }
end

-- What comes of a hunk: whole lines below those that go, the rest behind what goes.
local function draw_added(buffer, hunk)
  local lines = vim.split(hunk.text, '\n', { plain = true })
  local row = hunk.stop[1]
  local whole = hunk.stop[2] == 0 and lines[#lines] == '' and #lines > 1 and row > 0
  local below = {}
  if whole then
    lines[#lines] = nil
    row = row - 1
  end
  for i = whole and 1 or 2, #lines do
    table.insert(below, shown(lines[i]))
  end
  if not whole and lines[1] ~= '' then
    mark(buffer, row, hunk.stop[2], { virt_text = shown(lines[1]), virt_text_pos = INLINE and 'inline' or 'eol' })
  end
  if #below > 0 then
    mark(buffer, row, 0, { virt_lines = below })
  end
end

-- Draw the hunks of an edit in its buffer.
function M.draw(buffer, hunks)
  for _, hunk in ipairs(hunks) do
    if hunk.start[1] ~= hunk.stop[1] or hunk.start[2] ~= hunk.stop[2] then
      local stop = { end_row = hunk.stop[1], end_col = hunk.stop[2], hl_group = REMOVED }
      mark(buffer, hunk.start[1], hunk.start[2], stop)
    end
    if hunk.text ~= '' then
      draw_added(buffer, hunk)
    end
  end
end

-- Say behind a line what the key does.
function M.hint(buffer, row, text)
  local line = api.nvim_buf_get_lines(buffer, row, row + 1, false)[1] or ''
  mark(buffer, row, #line, { virt_text = { { '   ' .. text, HINT } }, virt_text_pos = 'eol' })
end

return M
