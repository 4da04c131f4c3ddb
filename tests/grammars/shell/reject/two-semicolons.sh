a ;; b
