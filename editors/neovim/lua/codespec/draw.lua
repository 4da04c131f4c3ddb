-- Ghost text on the screen: as inline virtual text from Neovim 0.10 on, which pushes the line behind the cursor aside;
-- before, as an overlay that paints that part of the line once more behind itself.

local M = {}

local api = vim.api

local NAMESPACE = api.nvim_create_namespace('codespec')
local GHOST = 'CodespecGhostText'
local INLINE = vim.fn.has('nvim-0.10') == 1
local MOST_COLOURED = 200 -- bytes of a line that are painted again in their colours

-- The colour of comments; grey where the colour scheme has none for them in this terminal, as Neovim's own has not
-- without true colours: ghost text would look like code.
local function ghost_colours()
  local comment = vim.fn.synIDtrans(vim.fn.hlID('Comment'))
  local fg, ctermfg = vim.fn.synIDattr(comment, 'fg#', 'gui'), vim.fn.synIDattr(comment, 'fg', 'cterm')
  if fg ~= '' and ctermfg ~= '' then
    return { link = 'Comment', default = true }
  end
  return { fg = fg ~= '' and fg or '#808080', ctermfg = tonumber(ctermfg) or 8, default = true }
end

function M.define_highlights()
  api.nvim_set_hl(0, GHOST, ghost_colours())
  api.nvim_set_hl(0, 'CodespecHint', { link = 'NonText', default = true })
end

-- Tabs as spaces, which virtual text needs; `column` is where the text starts on the screen.
local function expand_tabs(text, column)
  if not text:find('\t', 1, true) then
    return text, column + vim.fn.strdisplaywidth(text, column)
  end
  local parts = {}
  for part, tab in text:gmatch('([^\t]*)(\t?)') do
    column = column + vim.fn.strdisplaywidth(part, column)
    local width = tab == '' and 0 or vim.fn.strdisplaywidth('\t', column)
    column = column + width
    table.insert(parts, part .. (' '):rep(width))
  end
  return table.concat(parts), column
end

-- The line behind the cursor as it looks, in pieces of one colour each.
local function coloured(row, start, text, column)
  if #text > MOST_COLOURED or vim.bo.syntax == '' then
    return { { (expand_tabs(text, column)), 'Normal' } }
  end
  local chunks, from, colour = {}, 1, nil
  for i = 1, #text + 1 do
    local here = i <= #text and vim.fn.synIDattr(vim.fn.synIDtrans(vim.fn.synID(row, start + i, 1)), 'name')
    if here ~= colour then
      if i > from then
        local piece
        piece, column = expand_tabs(text:sub(from, i - 1), column)
        table.insert(chunks, { piece, colour ~= '' and colour or 'Normal' })
      end
      from, colour = i, here
    end
  end
  return chunks
end

function M.clear(buffer)
  if api.nvim_buf_is_valid(buffer) then
    api.nvim_buf_clear_namespace(buffer, NAMESPACE, 0, -1)
  end
end

local function mark(buffer, row, column, details)
  -- Inline text would take on the colours of the sign before it, as of a bracket whose counterpart is marked.
  details.hl_mode = details.virt_text_pos == 'inline' and 'replace' or 'combine'
  api.nvim_buf_set_extmark(buffer, NAMESPACE, row - 1, column, details)
end

-- Draw a text at the cursor of the current window, `after` behind its end, and a hint behind it all.
function M.draw(text, after, hint)
  local buffer = api.nvim_get_current_buf()
  local row, column = unpack(api.nvim_win_get_cursor(0))
  local lines = vim.split(text, '\n', { plain = true })
  local line = api.nvim_get_current_line()
  local first, stop = expand_tabs(lines[1], vim.fn.strdisplaywidth(line:sub(1, column)))
  local chunks = first ~= '' and { { first, GHOST } } or {}
  local below = {}
  for i = 2, #lines do
    below[i - 1] = { { (expand_tabs(lines[i], 0)), GHOST } }
  end
  -- Behind several lines, the line behind the cursor goes on at the end of the last, and is blank on the first.
  local moves = #lines > 1 and after ~= ''
  local inline = INLINE and not moves
  if moves then
    table.insert(chunks, { (' '):rep(vim.fn.strdisplaywidth(after, stop)), 'Normal' })
    table.insert(below[#below], { (expand_tabs(after, vim.fn.strdisplaywidth(lines[#lines]))), 'Normal' })
  elseif not inline then
    vim.list_extend(chunks, coloured(row, column, after, stop))
  end
  M.clear(buffer)
  if hint and inline and #below == 0 and after ~= '' then
    mark(buffer, row, column, { virt_text = { { hint, 'CodespecHint' } }, virt_text_pos = 'eol' })
  elseif hint then
    table.insert(below[#below] or chunks, { ' ' .. hint, 'CodespecHint' })
  end
  mark(buffer, row, column, {
    virt_text = #chunks > 0 and chunks or nil,
    virt_text_pos = inline and 'inline' or 'overlay',
    virt_lines = #below > 0 and below or nil,
  })
end

return M
