"""What a machine lacks, where a kernel's time goes, and whether attacks are still refused."""
