"""The site's pages, one kind a module: each gives the page's data and its template. Trusted; pure."""
