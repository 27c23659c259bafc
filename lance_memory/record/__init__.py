"""What a memory is: values, Arrow rows, filters, times, ids."""
