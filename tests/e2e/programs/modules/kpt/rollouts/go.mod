module github.com/kptdev/kpt/rollouts

go 1.24
