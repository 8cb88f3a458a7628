-- Included nearly everywhere.
-- Numbers up to 2^53, as Redis wants them: Lua's own formatting turns large ones into 1e+15.
local function text(number) return string.format('%.0f', number) end
