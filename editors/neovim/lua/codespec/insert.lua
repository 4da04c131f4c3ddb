-- Inserting accepted text.

local M = {}

local api = vim.api

-- Insert lines at the cursor and go behind them. In Insert mode `.` repeats what is inserted as if it had been typed,
-- which only nvim_paste can arrange; a user's own vim.paste has no part in it.
function M.at_cursor(lines)
  local function put()
    local row, column = unpack(api.nvim_win_get_cursor(0))
    api.nvim_buf_set_text(0, row - 1, column, row - 1, column, lines)
    api.nvim_win_set_cursor(0, { row + #lines - 1, (#lines == 1 and column or 0) + #lines[#lines] })
    return true
  end
  if #lines > 1 or api.nvim_get_mode().mode ~= 'i' then
    return put() -- repeated, the indentation of lines would come twice
  end
  local paste = vim.paste
  vim.paste = put
  local done, problem = pcall(api.nvim_paste, lines[1], false, -1)
  vim.paste = paste
  if not done then
    error(problem, 0)
  end
end

return M
