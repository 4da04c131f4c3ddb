été = 變數 + π_1
class Ångström: pass
