module github.com/belfryhq/belfry/bench

go 1.26.0

replace github.com/belfryhq/belfry => ../

require github.com/belfryhq/belfry v0.0.0
