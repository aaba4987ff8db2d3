"""Properties over white-box histories: what a recorder inside a queue can show."""
