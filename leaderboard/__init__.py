"""Records, ranks and publishes verdicts; knows nothing of sandboxes, problems or torch.

`ledger` is the record, `ranking` the one pure function from it to standings, `markdown` the printed board and
`archive` the sources. The front door calls all four. Trusted code; the names of files in a verdict are not.
"""
