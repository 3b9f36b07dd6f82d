"""Ways into other libraries, one module each. A module needs the extra of its name, which is not installed by default."""
