"""Value maps: treatments that replace each value of a column by a function of this value alone."""
