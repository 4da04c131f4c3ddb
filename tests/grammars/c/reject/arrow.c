int x = a->;
