# install rules, find_package and pkg-config
