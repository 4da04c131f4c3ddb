case a in b c;; esac
