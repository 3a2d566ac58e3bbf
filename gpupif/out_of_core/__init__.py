"""Tables larger than memory: encoded once, cut into parts on disk, scored part by part, the same bits as in memory."""
