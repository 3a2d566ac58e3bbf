"""The report: one HTML file about results, complete in itself, for a browser, a phone and paper."""
