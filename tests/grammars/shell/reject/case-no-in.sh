case a b) c;; esac
