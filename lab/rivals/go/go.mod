// The rival Go: a module without dependencies, so that there is no go.sum.
module rival

go 1.22
