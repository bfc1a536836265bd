package kernel

const haveAssembly = true
