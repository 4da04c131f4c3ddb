int x = return;
