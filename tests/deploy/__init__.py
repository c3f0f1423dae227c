"""The whole as it is deployed: the template, the bundle, the functions, a stack on an emulator. Nothing leaves the machine."""
