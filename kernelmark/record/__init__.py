"""The ledger's verdicts, the boards that follow from them, and what may be added."""
