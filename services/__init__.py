"""The services: one folder for each bounded context, and the chassis they stand on."""
