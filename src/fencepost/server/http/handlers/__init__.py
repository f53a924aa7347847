"""What is done for each operation; a module for each thing that can be asked about."""
