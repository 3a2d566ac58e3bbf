# sdcMicro's side of `python -m benchmarks.sdcmicro`, in a process of its own. Arguments are name=value:
#
#   Rscript sdcmicro.R work=versions
#   Rscript sdcmicro.R work=shipped out=FOLDER             writes the tables that sdcMicro ships, a CSV file each
#   Rscript sdcmicro.R work=suda table=FILE.csv keys=a,b out=FOLDER seconds=3 most=60 threads=1 ...
#
# Work on a table is run until it has taken so many seconds, three times at least or until `most` of them are over. The
# last line of the output has the seconds of each run; what was computed goes to out/NAME.f64, eight bytes a number.

arguments <- list()
for (argument in commandArgs(TRUE)) {
  name <- sub("=.*", "", argument)
  arguments[[name]] <- sub("[^=]*=", "", argument)
}
listed <- function(name) if (is.null(arguments[[name]])) character(0) else strsplit(arguments[[name]], ",")[[1]]

needed <- c("sdcMicro", "data.table")
missing_packages <- needed[!vapply(needed, requireNamespace, logical(1), quietly = TRUE)]
if (length(missing_packages)) {
  cat("missing", missing_packages, "\n")
  quit(status = 3)
}
suppressMessages({
  library(sdcMicro)
  library(data.table)
})

if (arguments$work == "versions") {
  cat("R", as.character(getRversion()), "\n")
  for (package in needed) cat(package, as.character(packageVersion(package)), "\n")
  quit()
}

if (arguments$work == "shipped") {
  for (name in c("testdata", "testdata2", "free1", "francdat", "EIA", "CASCrefmicrodata", "Tarragona")) {
    data(list = name, package = "sdcMicro")
    fwrite(as.data.frame(get(name)), file.path(arguments$out, paste0(name, ".csv")), na = "")
  }
  quit()
}

setDTthreads(as.integer(arguments$threads))
keys <- listed("keys")
weight <- arguments$weight
sensitive <- arguments$sensitive
table <- as.data.frame(fread(arguments$table, na.strings = ""))
labels <- c(keys, sensitive)
numbers <- table[keys]
table[labels] <- lapply(table[labels], factor)

frequencies <- function() list(fk = freqCalc(table, keyVars = keys)$fk)

weighted_frequencies <- function() {
  found <- freqCalc(table, keyVars = keys, w = weight)
  list(fk = found$fk, Fk = found$Fk)
}

individual_risk <- function() {
  frequencies <- freqCalc(table, keyVars = keys, w = weight)
  risk <- indivRisk(frequencies)$rk
  few <- frequencies$fk <= 2
  list(risk_in_small_classes = ifelse(few, risk, NaN), risk_in_others = ifelse(few, NaN, risk))
}

exact_individual_risk <- function() {
  frequencies <- freqCalc(table, keyVars = keys, w = weight)
  list(exact_risk = ifelse(frequencies$fk > 50, NaN, indivRisk(frequencies, method = "exact")$rk))
}

household_risk <- function() {
  found <- measure_risk(table, keyVars = keys, w = weight, hid = arguments$household)
  list(household_risk = found$Res[, "hier_risk"])
}

# modRisk has the expected rows of each cell of a model with all interactions of two; of these what gpupif's global_risk
# says, where all rows have the same weight.
log_linear_risk <- function() {
  model <- paste("~", paste(c(keys, combn(keys, 2, paste, collapse = ":")), collapse = " + "))
  expected <- suppressWarnings(modRisk(table, weights = weight, formulaM = as.formula(model))$fitted)
  cells <- do.call(CJ, lapply(table[keys], function(values) sort(unique(values))))
  rows <- as.data.table(table)[, .(rows = .N), by = keys][cells, on = keys]$rows
  fraction <- 1 / table[[weight]][1]
  missed <- ((1 - fraction) * expected / fraction)[which(rows == 1)]
  list(tau = c(sum(exp(-missed)), sum((1 - exp(-missed)) / missed)))
}

violations <- function() {
  object <- createSdcObj(table, keyVars = keys, w = weight)
  list(violations = vapply(c(2, 3, 5), function(k) kAnon_violations(object, FALSE, k), numeric(1)))
}

l_diversity <- function() {
  found <- unclass(ldiversity(table, keyVars = keys, ldiv_index = sensitive, l_recurs_c = 2))
  list(distinct_l = found[, 1], entropy_l = found[, 2], recursive_l = pmin(found[, 3], 4))
}

suda <- function() {
  found <- suppressWarnings(suda2(table[keys], DisFraction = as.numeric(arguments$fraction)))
  contributions <- as.matrix(found$contributionPercent)
  list(score = found$score, dis_score = found$disScore, contributions = as.vector(t(contributions)))
}

# How many cells are suppressed for each k, and how many rows are in classes of fewer than k rows afterwards, where a
# missing value matches every value. `strata`: a column whose values no class may span.
suppressed_for_k <- function(keys, strata = NULL) {
  count <- function(k) {
    treated <- suppressWarnings(localSuppression(table, k = k, keyVars = keys, strataVars = strata))$xAnon
    cells <- sum(is.na(treated[keys])) - sum(is.na(table[keys]))
    groups <- if (is.null(strata)) list(treated) else split(treated, table[[strata]])
    left <- vapply(groups, function(group) sum(freqCalc(group, keyVars = keys)$fk < k), numeric(1))
    c(cells, sum(left))
  }
  found <- vapply(c(2, 3, 5), count, numeric(2))
  list(suppressed_cells = found[1, ], small_classes = found[2, ])
}
suppression <- function() suppressed_for_k(keys)
suppression_in_strata <- function() suppressed_for_k(head(keys, -1), tail(keys, 1))

# Cells that are suppressed for each k, by key variable; the first key variable is the most important one.
importance <- function() {
  count <- function(k) {
    treated <- suppressWarnings(localSuppression(table, k = k, keyVars = keys, importance = seq_along(keys)))$xAnon
    colSums(is.na(treated[keys])) - colSums(is.na(table[keys]))
  }
  list(cells_by_importance = vapply(c(2, 3, 5), count, numeric(length(keys))))
}

microaggregated <- function() list(means = unlist(microaggregation(numbers, method = "mdav", aggr = 3)$mx))

# Columns "after NAME" hold the masked numbers.
continuous <- function() {
  after <- setNames(table[paste("after", keys)], keys)
  list(
    interval_risk = dRisk(numbers, xm = after, k = 0.05),
    il1s = dUtility(numbers, xm = after, method = "IL1s") / prod(dim(numbers)),
    eigenvalues = dUtility(numbers, xm = after, method = "eigen")
  )
}

# How much masking at random keeps of correlations and standard deviations, and how far it moves numbers.
kept_of <- function(after) {
  after <- setNames(as.data.frame(after), keys)
  deviations <- vapply(after, sd, numeric(1)) / vapply(numbers, sd, numeric(1))
  loss <- dUtility(numbers, xm = after, method = "IL1s") / prod(dim(numbers))
  c(max(abs(cor(after) - cor(numbers))), max(abs(deviations - 1)), loss)
}
random_masking <- function() {
  set.seed(18)
  half <- seq_along(keys) <= length(keys) / 2
  sides <- paste(paste(keys[half], collapse = " + "), "~", paste(keys[!half], collapse = " + "))
  shuffled <- numbers
  shuffled[half] <- shuffle(numbers, form = as.formula(sides), gadp = FALSE)$shuffled
  noise <- addNoise(numbers, method = "correlated", noise = 10)$xm
  ranks <- rankSwap(numbers, variables = keys, TopPercent = 0, BottomPercent = 0, P = 0.05)
  list(kept = c(kept_of(noise), kept_of(ranks), kept_of(shuffled)))
}

work <- get(arguments$work)
taken <- numeric(0)
while (sum(taken) < as.numeric(arguments$most) && (length(taken) < 3 || sum(taken) < as.numeric(arguments$seconds))) {
  found <- NULL
  gc(FALSE)
  started <- as.numeric(Sys.time())
  found <- work()
  taken <- c(taken, as.numeric(Sys.time()) - started)
}
for (name in names(found)) {
  numbers <- file(file.path(arguments$out, paste0(name, ".f64")), "wb")
  writeBin(as.double(found[[name]]), numbers)
  close(numbers)
}
cat("seconds", format(taken, digits = 9), "\n")
