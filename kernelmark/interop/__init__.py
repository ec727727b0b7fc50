"""Problems of other projects, and submissions in their forms."""
