echo 'a
