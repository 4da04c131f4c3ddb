"""One model process per user: the language servers of all editor windows are its clients.

``address`` says where the two meet, ``wire`` what they tell each other. ``client`` and ``start`` are the side of a
language server, ``process``, ``session`` and ``models`` that of the model process.
"""
