"""What a power cut, a full disk or a killed process leaves of the files, and the way back."""
