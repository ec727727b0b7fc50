"""The site's charts, as inline SVG."""
