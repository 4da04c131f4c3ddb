int f(void)
{
	for_each_string_list_item(item, &list)
		f(item);
	if (x)
		TAILQ_FOREACH(a, b, c) return 1;
	else
		list_for_each(pos, head) { if (pos) break; }
}
