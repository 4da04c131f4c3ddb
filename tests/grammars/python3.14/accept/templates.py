a = t"{b}" t'{c!r:>{d}}' rt"\d{e}" T"""
{f["g"]}
""" t""
