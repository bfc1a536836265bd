package vector

const haveAssembly = true
