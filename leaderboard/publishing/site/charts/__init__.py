"""What is drawn on the site, as inline SVG."""
