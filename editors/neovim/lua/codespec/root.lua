-- The project that a file belongs to.

local M = {}

local uv = vim.uv or vim.loop

local ROOT_MARKERS = { 'codespec.toml', 'pyproject.toml', '.git' }

-- The nearest folder upwards with one of the markers; empty for none.
function M.of(path)
  local folder = vim.fn.fnamemodify(path, ':p:h')
  while true do
    for _, marker in ipairs(ROOT_MARKERS) do
      if uv.fs_stat(folder .. '/' .. marker) then
        return folder
      end
    end
    local parent = vim.fn.fnamemodify(folder, ':h')
    if parent == folder then
      return ''
    end
    folder = parent
  end
end

return M
